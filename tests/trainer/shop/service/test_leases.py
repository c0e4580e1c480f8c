"""Slots and leases: one owner at a time, expiry by silence, first come first served."""

from __future__ import annotations

import asyncio
import time

import pytest

from trainer.shop.service.errors import ServiceError
from trainer.shop.service.leases import LeasePool


class Clock:
    """Time that passes when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def pool(slots: int = 1, clock: Clock | None = None) -> tuple[LeasePool, list[int]]:
    released: list[int] = []
    made = LeasePool(range(slots), ttl=10, clock=clock or Clock(), on_release=released.append)
    return made, released


def test_a_one_slot_pool_gives_one_lease_and_again_after_release() -> None:
    leases, released = pool()
    first = leases.acquire()
    assert first is not None
    assert leases.acquire() is None
    assert leases.release(first) is True
    assert leases.release(first) is False
    assert released == [0]
    second = leases.acquire()
    assert second is not None
    assert second.id != first.id


def test_an_old_lease_cannot_touch_a_reassigned_slot() -> None:
    leases, _ = pool()
    old = leases.acquire()
    assert old is not None
    leases.release(old)
    new = leases.acquire()
    assert new is not None
    assert leases.release(old) is False
    with pytest.raises(ServiceError) as caught:
        leases.use(0, old.id)
    assert caught.value.code == "stale_lease"
    assert leases.use(0, new.id) is new


def test_silence_expires_a_lease_and_use_renews_it() -> None:
    clock = Clock()
    leases, released = pool(clock=clock)
    lease = leases.acquire()
    assert lease is not None
    clock.now += 9
    leases.use(0, lease.id)
    clock.now += 9
    assert leases.use(0, lease.id) is lease
    clock.now += 10
    assert leases.acquire() is not None
    assert released == [0]
    with pytest.raises(ServiceError) as caught:
        leases.use(0, lease.id)
    assert caught.value.code == "lease_expired"


def test_waiters_are_served_in_the_order_they_came() -> None:
    async def run() -> list[str]:
        leases, _ = pool()
        held = leases.acquire("first")
        served: list[str] = []

        async def wait(name: str) -> None:
            lease = await leases.wait(name, 5)
            assert lease is not None
            served.append(lease.owner)
            leases.release(lease)

        tasks = [asyncio.create_task(wait(name)) for name in "abc"]
        await asyncio.sleep(0)
        assert leases.waiting == 3
        assert held is not None
        leases.release(held)
        newcomer = leases.acquire("newcomer")
        assert newcomer is None
        await asyncio.gather(*tasks)
        return served

    assert asyncio.run(run()) == ["a", "b", "c"]


def test_a_waiter_gives_up_after_its_time_and_leaves_the_queue() -> None:
    async def run() -> None:
        leases, _ = pool()
        leases.acquire()
        assert await leases.wait("late", 0.01) is None
        assert leases.waiting == 0

    asyncio.run(run())


def test_a_waiter_that_vanished_passes_its_slot_on() -> None:
    async def run() -> None:
        leases, _ = pool()
        held = leases.acquire()
        gone = asyncio.create_task(leases.wait("gone", 5))
        next_one = asyncio.create_task(leases.wait("next", 5))
        await asyncio.sleep(0)
        gone.cancel()
        assert held is not None
        leases.release(held)
        lease = await next_one
        assert lease is not None
        assert lease.owner == "next"

    asyncio.run(run())


def test_a_waiter_cancelled_in_the_moment_of_its_grant_returns_the_slot() -> None:
    async def run() -> None:
        leases, _ = pool()
        held = leases.acquire()
        waiting = asyncio.create_task(leases.wait("w", 5))
        await asyncio.sleep(0)
        assert held is not None
        leases.release(held)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert leases.free == 1

    asyncio.run(run())


def test_a_waiter_whose_time_ends_in_the_moment_of_its_grant_keeps_the_slot() -> None:
    async def run() -> None:
        leases, _ = pool()
        held = leases.acquire()
        waiting = asyncio.create_task(leases.wait("w", 0.01))
        await asyncio.sleep(0)
        time.sleep(0.02)  # its time is over, which the loop sees right after the release
        await asyncio.sleep(0)
        assert held is not None
        leases.release(held)
        lease = await waiting
        assert lease is not None
        assert leases.release(lease) is True

    asyncio.run(run())


def test_expiry_wakes_those_who_wait() -> None:
    async def run() -> None:
        clock = Clock()
        leases, _ = pool(clock=clock)
        leases.acquire()
        sweeper = asyncio.create_task(leases.sweep(0.001))
        waiting = asyncio.create_task(leases.wait("w", 5))
        await asyncio.sleep(0.01)
        clock.now += 11
        assert await waiting is not None
        sweeper.cancel()

    asyncio.run(run())


def test_release_all_frees_every_slot() -> None:
    leases, released = pool(3)
    for _ in range(3):
        leases.acquire()
    leases.release_all()
    assert leases.free == 3
    assert sorted(released) == [0, 1, 2]


def test_the_expected_wait_follows_how_long_slots_are_held() -> None:
    clock = Clock()
    leases, _ = pool(2, clock)
    assert leases.expected_wait() == 0
    for _ in range(100):
        lease = leases.acquire()
        assert lease is not None
        clock.now += 4
        leases.release(lease)
    assert leases.expected_wait() == pytest.approx(2, rel=1e-3)
