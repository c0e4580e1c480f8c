"""What the service does with a request, apart from HTTP (environment.md §5).

Agent text never fails: every action comes back as a page. What fails is a client's mistake, as a
typed error. Resets wait in a queue of bounded length for a bounded time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from trainer.shop.service.episodes import Episodes, Reply
from trainer.shop.service.errors import ServiceError
from trainer.shop.service.leases import LeasePool
from trainer.shop.service.metrics import Metrics, Sample
from trainer.shop.service.requests import ResetRequest, read_reset, read_slot
from trainer.shop.world import World

_LONGEST_RETRY = 30


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """How the service treats its clients; times in seconds."""

    slots: int = 20
    lease_ttl: float = 600.0
    #: how long a reset waits for a slot before it is answered 429
    reset_wait: float = 60.0
    #: how many resets may wait; further ones are answered 429 at once
    max_waiting: int = 256
    #: without a token the service is open to whoever reaches it, so it binds to loopback only
    token: str | None = None
    #: needed for ``release_all`` and private goals; without one nobody may
    admin_token: str | None = None
    #: status codes of the published service instead of typed ones
    legacy_statuses: bool = False


class Service:
    """Episodes on slots ``numbers`` of one world, driven by requests."""

    def __init__(
        self,
        world: World,
        settings: ServiceSettings,
        *,
        numbers: range | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.world = world
        self.settings = settings
        self.metrics = Metrics()
        self.numbers = range(settings.slots) if numbers is None else numbers
        self.episodes = Episodes(world)
        self.pool = LeasePool(
            self.numbers,
            ttl=settings.lease_ttl,
            clock=clock,
            on_release=self.episodes.forget,
        )

    async def handle(
        self, request: Mapping[str, Any], *, admin: bool = False, wait: float | None = None
    ) -> Reply:
        """The reply to a request with a known action. Raises ServiceError.

        ``wait`` overrides how long a reset may wait for a slot.
        """
        action = request["action"]
        if action == "reset":
            return await self._reset(read_reset(request), admin=admin, wait=wait)
        if action == "release_all":
            require_admin(admin)
            self.pool.release_all()
            return {"message": "all slots released"}
        wanted = read_slot(request)
        lease = self.pool.use(wanted.slot, wanted.lease_id)
        if action == "interact":
            return self.episodes.interact(lease, wanted.sequence, request)
        if action == "terminate":
            reason = request.get("termination_reason", "action_limit")
            return self.episodes.terminate(lease, wanted.sequence, reason)
        if action == "release_one":
            self.pool.release(lease)
            return {"message": "slot released"}
        return {"message": "lease renewed", "lease_ttl_seconds": self.pool.ttl}

    async def _reset(self, request: ResetRequest, *, admin: bool, wait: float | None) -> Reply:
        if request.private_goal:
            require_admin(admin)
        self.episodes.check_task(request.task_id)
        repeated = self.episodes.repeat_reset(request.key, request)
        if repeated is not None:
            self.pool.use(repeated["env_idx"], repeated["lease_id"])
            return repeated
        return await self._reset_on_free_slot(
            request, self.settings.reset_wait if wait is None else wait
        )

    async def _reset_on_free_slot(self, request: ResetRequest, wait: float) -> Reply:
        lease = self.pool.acquire(request.owner)
        if lease is None and wait > 0:
            if self.pool.waiting >= self.settings.max_waiting:
                raise self.full("the queue for slots is full")
            lease = await self.pool.wait(request.owner, wait)
        if lease is None:
            raise self.full(f"no slot became free within {wait:g} s")
        try:
            repeated = self.episodes.repeat_reset(request.key, request)
        except ServiceError:
            self.pool.release(lease)
            raise
        if repeated is not None:  # the same reset was sent twice while it waited
            self.pool.release(lease)
            return repeated
        return self.episodes.reset(lease, request)

    def full(self, message: str) -> ServiceError:
        """429, with a hint when it is worth to come again."""
        seconds = min(max(1, math.ceil(self.pool.expected_wait())), _LONGEST_RETRY)
        return ServiceError("no_free_slot", message, retry_after=seconds)

    def health(self) -> dict[str, Any]:
        """``/healthz``: the published fields and what identifies the environment."""
        identity = self.world.identity()
        return {
            "ready": True,
            "environment_slots": len(self.numbers),
            "free_slots": self.pool.free,
            "tasks": len(self.world.tasks),
            "environment_version": identity["environment_version"],
            "primary_reward": identity["primary_reward"],
            "observation_version": identity["observation_version"],
            "debug_ui": False,
            "replay_ui": False,
            "queue_depth": self.pool.waiting,
            "lease_ttl_seconds": self.settings.lease_ttl,
            "reset_wait_seconds": self.settings.reset_wait,
            "environment": identity,
        }

    def samples(self) -> list[Sample]:
        """Everything for ``/metrics``."""
        return [
            *self.metrics.samples(),
            ("shop_slots", {"state": "free"}, self.pool.free),
            ("shop_slots", {"state": "leased"}, len(self.numbers) - self.pool.free),
            ("shop_queue_depth", {}, self.pool.waiting),
            ("shop_leases_expired_total", {}, self.pool.expired),
            ("shop_environment_info", self._labels(), 1),
        ]

    def _labels(self) -> dict[str, str]:
        identity = self.world.identity()
        return {name: identity[name] for name in ("profile", "catalogue_sha256")}


def require_admin(admin: bool) -> None:
    if not admin:
        raise ServiceError("forbidden", "this needs the admin token")
