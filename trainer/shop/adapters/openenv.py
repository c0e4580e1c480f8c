"""The shop as an OpenEnv environment (``pip install openenv-core``).

``create_shop_app()`` serves it over OpenEnv's HTTP and WebSocket endpoints, so every trainer that
speaks OpenEnv can use it; each session has an environment of its own over one shared world::

    uvicorn --factory trainer.shop.adapters.openenv:create_shop_app
"""

from __future__ import annotations

import uuid
from typing import Any

from openenv.core.env_server import (  # type: ignore[import-not-found]
    Action,
    Environment,
    Observation,
    State,
    create_app,
)
from pydantic import Field

from trainer.shop.gym import ShopEnv
from trainer.shop.profiles import ShopProfile
from trainer.shop.world import World, load_world


class ShopAction(Action):  # type: ignore[misc]
    """A tool call: ``search`` with a query or ``click`` with a value of the page."""

    tool: str = Field(description="search or click")
    argument: str = Field(description="the query, or the value to click")


class ShopObservation(Observation):  # type: ignore[misc]
    """A page. ``reward_detail`` and ``goal`` are empty until the episode is done."""

    text: str = Field(description="the page as text")
    instruction: str = Field(default="", description="the shopping request, on reset")
    persona: dict[str, Any] = Field(default_factory=dict, description="the shopper, on reset")
    actions: list[str] = Field(default_factory=list, description="values that can be clicked")
    tools: list[dict[str, Any]] = Field(default_factory=list, description="function schemas")
    reward_detail: dict[str, Any] = Field(default_factory=dict)
    goal: dict[str, Any] = Field(default_factory=dict)


class ShopEnvironment(Environment):  # type: ignore[misc]
    """One session's environment."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, world: World | None = None, *, split: str = "train") -> None:
        super().__init__()
        self._env = ShopEnv(world=world, split=split)
        self._state = State(episode_id=str(uuid.uuid4()), step_count=0)

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **options: Any
    ) -> ShopObservation:
        """Begin an episode; ``task_id`` chooses its task."""
        self._state = State(episode_id=episode_id or str(uuid.uuid4()), step_count=0)
        text, info = self._env.reset(seed=seed, options=options)
        return ShopObservation(
            text=text,
            instruction=info["instruction"],
            persona=info["persona"],
            actions=info["actions"],
            tools=info["tools"],
            metadata={"task_id": info["task_id"], "environment": self._env.world.identity()},
        )

    def step(
        self, action: ShopAction, timeout_s: float | None = None, **options: Any
    ) -> ShopObservation:
        """Carry out one tool call; a call that the page does not offer is a refused action."""
        self._state.step_count += 1
        text, reward, terminated, truncated, info = self._env.step((action.tool, action.argument))
        return ShopObservation(
            text=text,
            done=terminated or truncated,
            reward=reward,
            actions=info["actions"],
            tools=info["tools"],
            reward_detail=info.get("reward_detail", {}),
            goal=info.get("goal", {}),
            metadata={"feedback": info["feedback"]},
        )

    @property
    def state(self) -> State:
        """Episode id and number of steps."""
        return self._state


def create_shop_app(
    profile: str | ShopProfile = "standard", *, split: str = "train", sessions: int = 64
) -> Any:
    """The OpenEnv server application; the world is loaded once."""
    world = load_world(profile)
    return create_app(
        lambda: ShopEnvironment(world, split=split),
        ShopAction,
        ShopObservation,
        env_name="shop",
        max_concurrent_envs=sessions,
    )
