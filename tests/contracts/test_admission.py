"""The episode semaphore: honoured, released, per loop, and never a reason to starve."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.contracts.shopping_scripts import by_session, losing, tasks, winning
from trainer.engines.slime import shops
from trainer.engines.slime.admission import BlockingCalls, EpisodeAdmission, to_the_end
from trainer.rollout.conversation import FunctionConversation
from trainer.rollout.episode import TechnicalFailure
from trainer.shop.session import ShopSession


@pytest.mark.parametrize("limit", [True, False, 1.0, "2", None, 0, -3])
def test_only_positive_integers_are_limits(limit):
    async def enter():
        async with EpisodeAdmission().slot(limit):
            pass

    with pytest.raises(ValueError, match="positive integer"):
        asyncio.run(enter())


def test_never_more_than_the_limit_are_inside_and_errors_and_cancellations_give_their_slot_back():
    admission = EpisodeAdmission()
    inside, peak = 0, 0

    async def episode(number):
        nonlocal inside, peak
        async with admission.slot(3):
            inside += 1
            peak = max(peak, inside)
            try:
                await asyncio.sleep(0)
                if number % 3 == 1:
                    raise RuntimeError("broken")
                if number % 3 == 2:
                    raise asyncio.CancelledError
            finally:
                inside -= 1

    async def all_of_them():
        await asyncio.gather(*(episode(n) for n in range(30)), return_exceptions=True)

    asyncio.run(all_of_them())
    assert peak == 3
    assert inside == 0
    asyncio.run(all_of_them())  # a new loop gets a new semaphore


def test_a_changed_limit_takes_effect():
    admission = EpisodeAdmission()

    async def peak_with(limit):
        inside, peak = 0, 0

        async def episode():
            nonlocal inside, peak
            async with admission.slot(limit):
                inside += 1
                peak = max(peak, inside)
                await asyncio.sleep(0)
                inside -= 1

        await asyncio.gather(*(episode() for _ in range(10)))
        return peak

    async def both():
        return await peak_with(2), await peak_with(5)

    assert asyncio.run(both()) == (2, 5)


def test_work_is_waited_for_to_its_end_before_a_cancellation_is_raised():
    steps = []

    async def work():
        await asyncio.sleep(0.02)
        steps.append("closed")

    async def caller():
        try:
            await to_the_end(work())
        finally:
            steps.append("went on")

    async def cancel_it():
        task = asyncio.create_task(caller())
        await asyncio.sleep(0.005)
        task.cancel()
        await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_it())
    assert steps == ["closed", "went on"]


def test_errors_of_blocking_calls_come_through():
    def call():
        raise TechnicalFailure("environment", "gone")

    async def run():
        await BlockingCalls().run(call, threads=1)

    with pytest.raises(TechnicalFailure, match="gone"):
        asyncio.run(run())


class SlowShop:
    """A blocking shop with few slots, as a service is."""

    blocks = True
    builder = FunctionConversation()

    def __init__(self, world):
        self.world = world
        self.open = 0
        self.peak = 0
        self.opened = 0

    def identity(self):
        return {"adapter": "slow"}

    def meet(self, session):
        pass

    def session(self, task_id, max_actions):
        shop = self

        class Session(ShopSession):
            def reset(self):
                shop.open += 1
                shop.opened += 1
                shop.peak = max(shop.peak, shop.open)
                return super().reset()

            def close(self):
                shop.open -= 1

        return Session(shop.world, task_id, max_actions=max_actions)


@pytest.fixture
def slow_shop(double, monkeypatch):
    from tests.contracts.shopping_scripts import world

    shop = SlowShop(world())
    monkeypatch.setattr("trainer.engines.slime.runtime.shop_of", lambda settings: shop)
    return shop


def test_the_slots_of_a_blocking_shop_are_never_exceeded_and_all_come_back(double, slow_shop):
    double.play(by_session(lambda group, sample, retry: winning(tasks()[group])))
    args = double.args(shopsim_episode_concurrency=3, n_samples_per_prompt=4)

    async def many():
        groups = [double.group(index, size=4) for index in range(4)]
        await asyncio.gather(*(double.generate_group(group, args) for group in groups))

    asyncio.run(many())
    assert slow_shop.peak <= 3
    assert slow_shop.open == 0
    assert slow_shop.opened == 16


def test_a_limit_of_one_does_not_keep_a_retry_waiting_for_itself(double, slow_shop):
    double.play(by_session(lambda group, sample, retry: losing(tasks()[0])))
    double.generate(double.group(0), double.args(shopsim_episode_concurrency=1))
    assert slow_shop.opened == 3
    assert slow_shop.peak == 1
    assert slow_shop.open == 0


def test_a_small_pool_of_the_loop_does_not_starve_many_queued_episodes(double, slow_shop):
    double.play(by_session(lambda group, sample, retry: winning(tasks()[group])[:1]))
    args = double.args(n_samples_per_prompt=8, shopsim_max_steps=1, shopsim_full_skill_retry=False)

    async def many():
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
        groups = [double.group(index, size=8) for index in range(16)]
        await asyncio.gather(*(double.generate_group(group, args) for group in groups))

    asyncio.run(asyncio.wait_for(many(), timeout=60))
    assert slow_shop.opened == 128
    assert slow_shop.open == 0


def test_a_cancelled_episode_closes_its_session_first(double, slow_shop):
    double.play(lambda session, turn: "words")

    async def cancel():
        work = asyncio.create_task(double.generate_group(double.group(0), double.args()))
        while slow_shop.open < 2:
            await asyncio.sleep(0.005)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(cancel())
    assert slow_shop.open == 0


def test_a_session_that_cannot_be_opened_leaves_a_trace_of_its_reset(double, monkeypatch):
    from pathlib import Path

    from tests.contracts.shopping_scripts import world
    from trainer.files import read_json

    class Refusing(SlowShop):
        def session(self, task_id, max_actions):
            session = super().session(task_id, max_actions)

            def reset():
                raise TechnicalFailure("environment", "the shop is full")

            session.reset = reset
            session.close = lambda: None
            return session

    shop = Refusing(world())
    monkeypatch.setattr("trainer.engines.slime.runtime.shop_of", lambda settings: shop)
    double.play(lambda session, turn: "x")
    rows = double.generate(double.group(0))[0]
    trace = read_json(Path(rows[0].metadata["shopsim_trace_path"]))
    assert trace["error"]["stage"] == "reset"
    assert trace["error"]["message"] == "the shop is full"
    assert rows[0].metadata["shopsim_failure"] == "environment"
    assert shops.shop_of is not None
