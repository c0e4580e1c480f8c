"""Slots and the leases on them: who may use which episode, and for how long (environment.md §5.5).

A lease lasts ``ttl`` seconds from its last use; a client that died gives its slot back by silence.
Waiters are served strictly in the order they came. All methods run on one event loop and never
block, so each is atomic."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from trainer.shop.service.errors import ServiceError

#: weight of the newest lease in the mean of how long slots are held
_RECENT = 0.1


@dataclass(slots=True)
class Lease:
    """The right to one slot from ``granted_at`` until ``expires_at`` (the pool's clock)."""

    slot: int
    id: str
    owner: str
    granted_at: float
    expires_at: float


class LeasePool:
    """Slots ``numbers``, their leases, and the queue of those who wait for one."""

    def __init__(
        self,
        numbers: range,
        *,
        ttl: float,
        clock: Callable[[], float],
        on_release: Callable[[int], None],
    ) -> None:
        self.ttl = ttl
        self.expired = 0
        self._clock = clock
        self._mean_hold = 0.0
        self._nothing_expires_before = 0.0
        self._on_release = on_release
        self._free = list(reversed(numbers))
        self._numbers = numbers
        self._leases: dict[int, Lease] = {}
        self._recently_expired: OrderedDict[str, None] = OrderedDict()
        self._waiting: OrderedDict[asyncio.Future[Lease], str] = OrderedDict()

    @property
    def free(self) -> int:
        return len(self._free)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def acquire(self, owner: str = "") -> Lease | None:
        """A lease at once, or None. Never overtakes those who wait."""
        self.expire()
        if not self._free or self._waiting:
            return None
        return self._grant(owner)

    def expected_wait(self) -> float:
        """Seconds until somebody who comes now is served, by how long slots were held lately."""
        return self._mean_hold * (self.waiting + 1) / len(self._numbers)

    async def wait(self, owner: str, timeout: float) -> Lease | None:
        """A lease when it is this caller's turn, or None after ``timeout`` seconds."""
        lease = self.acquire(owner)
        if lease is not None:
            return lease
        future: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        self._waiting[future] = owner
        try:
            async with asyncio.timeout(timeout):
                return await future
        except TimeoutError:  # the grant may have come in the same moment
            return None if future.cancelled() or not future.done() else future.result()
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.release(future.result())
            raise
        finally:
            self._waiting.pop(future, None)

    def _grant(self, owner: str) -> Lease:
        slot = self._free.pop()
        now = self._clock()
        lease = Lease(slot, secrets.token_hex(16), owner, now, now + self.ttl)
        self._leases[slot] = lease
        return lease

    def use(self, slot: int, lease_id: str) -> Lease:
        """The lease, renewed. Raises ServiceError for a stale, foreign or expired one."""
        self.expire()
        lease = self._leases.get(slot)
        given = lease_id.encode("utf-8", "replace")
        if lease is None or not secrets.compare_digest(lease.id.encode(), given):
            if lease_id in self._recently_expired:
                raise ServiceError("lease_expired", f"the lease on slot {slot} expired")
            raise ServiceError("stale_lease", f"the lease on slot {slot} is not the current one")
        lease.expires_at = self._clock() + self.ttl
        return lease

    def release(self, lease: Lease) -> bool:
        """Give the slot to the first who waits, or back. False when the lease is not current."""
        if self._leases.get(lease.slot) is not lease:
            return False
        del self._leases[lease.slot]
        self._mean_hold += (self._clock() - lease.granted_at - self._mean_hold) * _RECENT
        self._on_release(lease.slot)
        self._free.append(lease.slot)
        self._serve_waiting()
        return True

    def release_all(self) -> None:
        """Void every lease."""
        for lease in list(self._leases.values()):
            self.release(lease)

    def expire(self) -> None:
        """Release what was not used for ``ttl`` seconds."""
        now = self._clock()
        if now < self._nothing_expires_before:
            return
        for lease in [item for item in self._leases.values() if item.expires_at <= now]:
            self._recently_expired[lease.id] = None
            while len(self._recently_expired) > 4 * len(self._numbers):
                self._recently_expired.popitem(last=False)
            self.expired += 1
            self.release(lease)
        # Leases are only ever prolonged, so the earliest end of now stays a lower bound.
        ends = (lease.expires_at for lease in self._leases.values())
        self._nothing_expires_before = min(ends, default=now + self.ttl)

    def _serve_waiting(self) -> None:
        while self._free and self._waiting:
            future, owner = self._waiting.popitem(last=False)
            if not future.done():
                future.set_result(self._grant(owner))

    async def sweep(self, interval: float) -> None:
        """Expire leases for ever, for the sake of those who wait."""
        with contextlib.suppress(asyncio.CancelledError):
            while True:
                await asyncio.sleep(interval)
                self.expire()
