"""Where the episodes of a rollout worker are played: inside it, or in a shop service.

Both give a session, the facts that traces record about the environment, and the builder that talks
to the policy. Calls of a service block, so they run in threads of their own pool; sessions inside
the process answer at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

from trainer.engines.slime.settings import HookSettings
from trainer.errors import InputError
from trainer.rollout.conversation import (
    ConversationBuilder,
    FunctionConversation,
    conversation_builder,
)
from trainer.rollout.episode import Session
from trainer.shop.client import ShopClient
from trainer.shop.remote import RemoteSession
from trainer.shop.session import ShopSession


class Shop(Protocol):
    """What the hooks need of an environment."""

    @property
    def blocks(self) -> bool:
        """Whether sessions wait for a network."""
        ...

    @property
    def builder(self) -> ConversationBuilder:
        """How the environment talks to a policy."""
        ...

    @property
    def world(self) -> Any:
        """What ``Episode`` reads beside the session: the profile."""
        ...

    def identity(self) -> dict[str, Any]:
        """``provenance.environment`` of the traces."""
        ...

    def session(self, task_id: int, max_actions: int) -> Session:
        """A new session, not yet reset."""
        ...


@dataclass(frozen=True, slots=True)
class InProcessShop:
    """Sessions of a world that this worker has loaded."""

    world: Any
    builder: ConversationBuilder
    blocks: bool = False

    def identity(self) -> dict[str, Any]:
        return {"adapter": "in_process", **self.world.identity()}

    def session(self, task_id: int, max_actions: int) -> Session:
        return ShopSession(self.world, task_id, max_actions=max_actions)


@dataclass(frozen=True, slots=True)
class RemoteShop:
    """Sessions of a shop service that speaks the published protocol."""

    settings: HookSettings
    builder: ConversationBuilder
    blocks: bool = True

    @property
    def world(self) -> Any:
        return SimpleNamespace(profile=SimpleNamespace(primary_reward="r_strict"))

    def identity(self) -> dict[str, Any]:
        return {
            "adapter": "shopsimulator_http",
            "base_url": self.settings.environment_base_url,
            "persona": self.settings.environment_persona,
            "interaction_mode": "single_turn",
        }

    def session(self, task_id: int, max_actions: int) -> Session:
        client = ShopClient(
            self.settings.environment_base_url,
            persona=self.settings.environment_persona,
            timeout=self.settings.environment_timeout,
            owner="slime",
        )
        return OwnSession(client, task_id)


class OwnSession(RemoteSession):
    """A session with a connection of its own, which ends with it."""

    def __init__(self, client: ShopClient, task_id: int) -> None:
        super().__init__(client, task_id)
        self._own = client

    def close(self) -> None:
        """Give the slot back and disconnect."""
        self._own.close()


def shop_of(settings: HookSettings) -> Shop:
    """The environment of these settings; a world is loaded once per process."""
    if settings.environment == "http":
        return RemoteShop(settings, FunctionConversation(**_prompt_option(settings)))
    world = _world(settings.world_profile, settings.world_catalogue)
    if world.language is None:
        return InProcessShop(world, FunctionConversation(**_prompt_option(settings)))
    return InProcessShop(world, conversation_builder(world))


def _prompt_option(settings: HookSettings) -> dict[str, str]:
    if settings.system_prompt_file is None:
        return {}
    return {"system_prompt": read_prompt(settings.resolve(settings.system_prompt_file))}


@lru_cache(maxsize=8)
def read_prompt(path: Path) -> str:
    """The text of a prompt file, once per process. Raises InputError when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the system prompt: {error}", file=path) from error


@lru_cache(maxsize=4)
def _world(profile: str, catalogue: Path | None) -> Any:
    from trainer.shop.world import load_world

    return load_world(profile, catalogue=catalogue)
