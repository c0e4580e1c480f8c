"""One shopping episode: counting, feedback, limits and the score (environment.md §2.3, §2.4).

Every call of ``step`` counts against the limit, whatever the agent wrote, and no agent input
raises. Only the caller's own mistakes do: stepping an episode that is over, or before ``reset``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.shop.feedback import Reason, feedback
from trainer.shop.navigation import ATTRIBUTES, BACK_TO_SEARCH, BUY, NEXT, PREVIOUS, Navigation
from trainer.shop.reward import score_nothing, score_purchase
from trainer.shop.types import Action, Observation, PageType, StepResult, Task, TerminationReason

if TYPE_CHECKING:
    from trainer.shop.world import World

__all__ = [
    "ATTRIBUTES",
    "BACK_TO_SEARCH",
    "BUY",
    "NEXT",
    "PREVIOUS",
    "EpisodeOver",
    "ShopSession",
]


def encodable(text: str) -> str:
    """``text`` with lone surrogates replaced, so that it can be written to any file or socket."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


class EpisodeOver(RuntimeError):
    """The caller stepped or terminated an episode that is finished or was never reset."""


class ShopSession:
    """One episode of one task. Not shared between threads; the world may be."""

    def __init__(self, world: World, task_id: int, *, max_actions: int | None = None) -> None:
        """Raises InputError for a task that the world does not have."""
        self.world = world
        self.task: Task = world.task(task_id)
        self.max_actions = world.profile.max_actions if max_actions is None else max_actions
        self.done = True
        self._begin()

    def _begin(self) -> None:
        self.actions_taken = 0
        self.termination_reason: TerminationReason | None = None
        self._place = Navigation(self.world)
        self._last_action: dict[str, Any] | None = None

    @property
    def page_type(self) -> PageType:
        """The page the agent is on. ``terminal`` only after a purchase."""
        return self._place.type

    @property
    def selected(self) -> dict[str, str]:
        """The current selection, axis → value."""
        return dict(self._place.selected)

    def reset(self) -> Observation:
        """Begin anew on the home page."""
        self._begin()
        self.done = False
        return self.observe()

    def step(self, action: Action) -> StepResult:
        """Carry out one action, or say why not."""
        self._require_open()
        argument = encodable(action.argument)
        act = self._place.search if action.name == "search" else self._place.click
        return self._finish_step(f"{action.name}[{argument}]", act(argument))

    def reject(self, text: str, reason: Reason) -> StepResult:
        """Count an action that could not be read; the page stays what it was."""
        self._require_open()
        return self._finish_step(encodable(text), reason)

    def terminate(self, reason: TerminationReason) -> StepResult:
        """End without a purchase: zero score, the page stays what it was."""
        self._require_open()
        if reason not in self.world.profile.caller_terminations:
            raise ValueError(f"termination reason {reason!r} is not for callers")
        return self._end(reason, None)

    def _require_open(self) -> None:
        if self.done:
            raise EpisodeOver("the episode is over or was not reset; call reset() first")

    def observe(self) -> Observation:
        """The current page again; nothing is counted."""
        state = self._place.state(self._last_action)
        return Observation(self.world.render(state), state)

    def _finish_step(self, text: str, reason: Reason) -> StepResult:
        self.actions_taken += 1
        missing = self._place.missing() if reason == "incomplete_options" else ()
        self._last_action = record = feedback(text, reason, missing)
        if self._place.type == "terminal":
            return self._purchase(record)
        if self.actions_taken >= self.max_actions:
            return self._end("action_limit", record)
        return StepResult(self.observe(), False, 0.0, record)

    def _purchase(self, record: dict[str, Any]) -> StepResult:
        world, page = self.world, self._place.page
        selected = page.complete(self._place.selected)
        resolution = page.prices.resolve(selected)
        detail = score_purchase(
            world.profile,
            world.type_terms,
            product=page.product,
            selected=selected,
            task=self.task,
            resolution=resolution,
        )
        self.done, self.termination_reason = True, "purchase"
        return StepResult(
            observation=self.observe(),
            done=True,
            reward=float(detail[world.profile.primary_reward]),
            feedback=record,
            reward_detail=detail,
            purchase=world.purchase_record(page.product, selected, resolution),
            goal=world.goal_record(self.task),
            termination_reason="purchase",
        )

    def _end(self, reason: TerminationReason, record: dict[str, Any] | None) -> StepResult:
        self.done, self.termination_reason = True, reason
        return StepResult(
            observation=self.observe(),
            done=True,
            reward=0.0,
            feedback=record,
            reward_detail=score_nothing(self.world.profile, reason),
            goal=self.world.goal_record(self.task),
            termination_reason=reason,
        )
