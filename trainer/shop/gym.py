"""The shop as a plain Gymnasium-style environment: ``reset`` and ``step`` with five return values.

Needs nothing but the shop; where Gymnasium is installed the spaces are its own and ``register``
makes ``gymnasium.make("intraskill/Shop-v0")`` work. Observations are page texts, actions are wire
texts (``search[…]``, ``click[…]``) or pairs (tool name, argument)."""

from __future__ import annotations

import importlib
import random
from typing import Any, ClassVar

from trainer.errors import InputError
from trainer.shop.action_text import read_action
from trainer.shop.profiles import ShopProfile
from trainer.shop.session import ShopSession
from trainer.shop.tools import tools_for
from trainer.shop.types import Action, StepResult, Task
from trainer.shop.world import World, load_world

ENVIRONMENT_ID = "intraskill/Shop-v0"


class ShopEnv:
    """One shopping episode at a time. Instances share a world and are otherwise independent."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"]}

    def __init__(
        self,
        profile: str | ShopProfile = "standard",
        *,
        world: World | None = None,
        split: str = "train",
        persona: bool = True,
        render_mode: str | None = None,
    ) -> None:
        """Tasks come from ``split``. Raises InputError for an unknown profile,
        split or render mode."""
        self.world = world or load_world(profile)
        self.task_ids = self.world.split(split)
        if not self.task_ids:
            raise InputError("the split has no tasks", field="split", value=split)
        if render_mode not in (None, "ansi"):
            raise InputError(
                "unknown render mode",
                field="render_mode",
                value=render_mode,
                remedy="Known modes: ansi, or None",
            )
        self.render_mode = render_mode
        self.observation_space = _text_space()
        self.action_space = _text_space()
        self._persona = persona
        self._random = random.Random()
        self._session: ShopSession | None = None
        self._text = ""

    @property
    def unwrapped(self) -> ShopEnv:
        return self

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode of ``options["task_id"]``, or of a task drawn with ``seed``."""
        if options is not None and not isinstance(options, dict):
            raise InputError(
                "must be a dict",
                field="options",
                value=options,
                remedy='Write {"task_id": 3}, or leave it out',
            )
        if seed is not None:
            self._random.seed(seed)
        task_id = (options or {}).get("task_id")
        if task_id is None:
            task_id = self._random.choice(self.task_ids)
        self._session = ShopSession(self.world, task_id)
        page = self._session.reset()
        self._text = page.text
        task = self._session.task
        return page.text, {
            "task_id": task.task_id,
            "instruction": self._instruction(task),
            "persona": dict(task.persona) if self._persona else {},
            **_page_info(dict(page.state)),
        }

    def _instruction(self, task: Task) -> str:
        return task.instruction_simple if self._persona and task.persona else task.instruction

    def step(self, action: str | tuple[str, str]) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """(page text, reward, terminated, truncated, info).

        A purchase terminates, the action limit truncates. No action raises; stepping an episode
        that is over does."""
        if self._session is None:
            raise RuntimeError("call reset() before step()")
        result = self._carry_out(self._session, action)
        self._text = result.observation.text
        info = {"feedback": result.feedback, **_page_info(dict(result.observation.state))}
        if result.done:
            info |= {
                "reward_detail": result.reward_detail,
                "purchase": result.purchase,
                "goal": result.goal,
                "termination_reason": result.termination_reason,
            }
        bought = result.termination_reason == "purchase"
        return self._text, result.reward, bought, result.done and not bought, info

    @staticmethod
    def _carry_out(session: ShopSession, action: object) -> StepResult:
        if isinstance(action, tuple) and len(action) == 2 and action[0] in ("search", "click"):
            return session.step(Action(action[0], str(action[1])))
        read = read_action(action)
        if isinstance(read, Action):
            return session.step(read)
        return session.reject(str(action), read)

    def render(self) -> str | None:
        """The current page, in render mode ``ansi``."""
        return self._text if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Nothing is held."""
        self._session = None


def _page_info(state: dict[str, Any]) -> dict[str, Any]:
    return {"state": state, "actions": state["actions"], "tools": tools_for(state)}


def _text_space() -> Any:
    """A Gymnasium space that holds every text (its own knows ASCII only); None without it."""
    try:
        spaces = importlib.import_module("gymnasium.spaces")
    except ModuleNotFoundError:
        return None
    any_text = type("AnyText", (spaces.Text,), {"contains": lambda _, x: isinstance(x, str)})
    return any_text(max_length=1 << 20)


def _make_for_gymnasium(**settings: Any) -> ShopEnv:
    """An environment that is also a ``gymnasium.Env``, which ``gymnasium.make`` insists on."""
    base = importlib.import_module("gymnasium").Env
    both: type[ShopEnv] = type("GymnasiumShopEnv", (ShopEnv, base), {})
    return both(**settings)


def register() -> None:
    """Make the environment known to Gymnasium. Raises InputError when it is not installed."""
    try:
        registration = importlib.import_module("gymnasium.envs.registration")
    except ModuleNotFoundError as error:
        raise InputError("Gymnasium is not installed", remedy="pip install gymnasium") from error
    registration.register(
        id=ENVIRONMENT_ID,
        entry_point=_make_for_gymnasium,
        disable_env_checker=True,
        order_enforce=False,
    )
