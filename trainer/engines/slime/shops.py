"""Where the episodes of a rollout worker are played: inside it, or in a shop service.

Both give a session, the facts that traces record about the environment, and the builder that talks
to the policy. Calls of a service block, so they run in threads of their own pool; sessions inside
the process answer at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
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
from trainer.shop.identity import OtherEnvironment, check_served
from trainer.shop.profiles import profile_named
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
        """``provenance.environment`` of the traces, as far as it is known."""
        ...

    def meet(self, session: Session) -> None:
        """Find out which environment a session is in; raises OtherEnvironment for a wrong one."""
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

    def meet(self, session: Session) -> None:
        """There is only the world of this worker."""

    def session(self, task_id: int, max_actions: int) -> Session:
        return ShopSession(self.world, task_id, max_actions=max_actions)


class RemoteShop:
    """Sessions of a shop service that speaks the published protocol.

    Every session asks the service what it serves before its episode begins. That must be what the
    settings name, and the same for all: a service that came back with another catalogue would mix
    two environments in one experiment."""

    blocks = True

    def __init__(self, settings: HookSettings, builder: ConversationBuilder) -> None:
        """Raises InputError when the variable of the service's token is not set."""
        self.builder = builder
        self._settings = settings
        self._token = settings.environment_token()
        self._wanted = wanted_identity(settings)
        self._served: dict[str, Any] = {}
        self._lock = Lock()

    @property
    def world(self) -> Any:
        reward = self._served.get("primary_reward", "r_strict")
        return SimpleNamespace(profile=SimpleNamespace(primary_reward=reward))

    def identity(self) -> dict[str, Any]:
        return {
            "adapter": "shopsimulator_http",
            "base_url": self._settings.environment_base_url,
            "persona": self._settings.environment_persona,
            "interaction_mode": "single_turn",
            **self._served,
        }

    def meet(self, session: Session) -> None:
        """Ask the session's service. Raises OtherEnvironment, or ShopServiceError without one."""
        if not isinstance(session, OwnSession):
            raise TypeError(f"not a session of a service: {type(session).__name__}")
        served = session.client.served()
        check_wanted(session.client.url, served, self._wanted)
        with self._lock:
            check_served(session.client.url, served, self._served)
            self._served = self._served or served

    def session(self, task_id: int, max_actions: int) -> Session:
        client = ShopClient(
            self._settings.environment_base_url,
            persona=self._settings.environment_persona,
            timeout=self._settings.environment_timeout,
            token=self._token,
            owner="slime",
        )
        return OwnSession(client, task_id)


class OwnSession(RemoteSession):
    """A session with a connection of its own, which ends with it."""

    def __init__(self, client: ShopClient, task_id: int) -> None:
        super().__init__(client, task_id)
        self.client = client

    def close(self) -> None:
        """Give the slot back and disconnect."""
        self.client.close()


def wanted_identity(settings: HookSettings) -> dict[str, Any]:
    """What the settings demand of a service, in the fields of ``World.identity()``."""
    wanted: dict[str, Any] = {}
    if settings.environment_profile is not None:
        wanted |= profile_named(settings.environment_profile).identity()
    if settings.environment_catalogue_sha256 is not None:
        wanted["catalogue_sha256"] = settings.environment_catalogue_sha256
    return wanted


def check_wanted(url: str, served: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise OtherEnvironment unless a service is what ``wanted_identity`` demands."""
    if "catalogue_sha256" in wanted and "catalogue_sha256" not in served:
        raise OtherEnvironment(
            "the service does not tell its catalogue",
            field="shopsim_environment_catalogue_sha256",
            value=wanted["catalogue_sha256"],
            remedy=f"Serve it with `python -m trainer shop serve` at {url}, or leave the key out",
        )
    if "environment_version" in wanted and "environment_version" not in served:
        raise OtherEnvironment(
            "the service does not tell its environment_version",
            field="shopsim_environment_profile",
            value=wanted["profile"],
            remedy=f"Check what answers at {url}, or leave the key out",
        )
    check_served(url, served, wanted)


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
