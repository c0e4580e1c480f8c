"""Demonstrated episodes on the shop's own machine, and the solver that picks winnable tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from trainer.shop.mini.demonstrator import ALL_HABITS, Demonstrator
from trainer.shop.mini.language import MiniLanguage
from trainer.shop.mini.tasks import Solver, need_of
from trainer.shop.mini.world import DraftWorld
from trainer.shop.session import ShopSession
from trainer.shop.tools import ToolCallError, action_of
from trainer.shop.types import Action, Observation, StepResult, Task

_LANGUAGE = MiniLanguage()

#: words that a shopper says by mistake before the turn of this number, or None
Slip = Callable[[int], list[str] | None]


@dataclass(frozen=True, slots=True)
class Turn:
    """What a shopper read and then did. ``meant`` is False for a slip."""

    page: str
    words: tuple[str, ...]
    meant: bool = True


@dataclass(slots=True)
class Demonstration:
    """One episode of a shopper."""

    turns: list[Turn] = field(default_factory=list)
    result: StepResult | None = None

    @property
    def success(self) -> bool:
        return self.result is not None and self.result.reward_detail["r_success"] == 1


def demonstrate(
    world: DraftWorld, task: Task, habits: frozenset[str], slip: Slip | None = None
) -> Demonstration:
    """Play ``task`` to its end with ``habits``; a slip costs a turn and is shown as what it is."""
    world.draft = task
    session = ShopSession(world, task.task_id)
    shopper = Demonstrator(need_of(task), habits, session.max_actions)
    played = Demonstration()
    page = session.reset()
    text = page.text
    while True:
        slipped = slip(shopper.turns + 1) if slip else None
        words = slipped or shopper.act(page.state)
        played.turns.append(Turn(text, tuple(words), meant=slipped is None))
        if slipped:
            shopper.turns += 1
        action = _action(words, page)
        if action is None:
            text = _LANGUAGE.feedback("invalid_tool_call")
            continue
        played.result = session.step(action)
        if played.result.done:
            return played
        page = played.result.observation
        text = page.text


def _action(words: list[str], page: Observation) -> Action | None:
    try:
        name, arguments = _LANGUAGE.decode(words, page.state)
        return action_of(name, arguments, page.state)
    except ToolCallError:
        return None


def solver(world: DraftWorld) -> Solver:
    """Actions in which a shopper with every habit wins a task, or None when they do not."""

    def solve(task: Task) -> int | None:
        played = demonstrate(world, task, ALL_HABITS)
        return len(played.turns) if played.success else None

    return solve
