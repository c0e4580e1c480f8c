"""Shoppers with faults of their own, to be diagnosed: written for these tests, not for training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.trainer.analyst.played import played
from trainer.analyst.rules.goal import goal_of
from trainer.analyst.rules.shopper import Shopper
from trainer.shop.session import ShopSession
from trainer.shop.types import Action
from trainer.shop.world import World
from trainer.skills.types import Chunk


def trace_of(
    world: World, task_id: int, faults: Sequence[str], chunks: Sequence[Chunk] = ()
) -> dict[str, Any]:
    """The trace of a shopper that has these faults and no other."""
    shopper = Shopper(goal_of(world.task(task_id), world.catalogue), frozenset(faults))
    session = ShopSession(world, task_id)
    page = session.reset()
    actions: list[Action] = []
    while True:
        action = shopper.act(page.state, session.max_actions - len(actions))
        actions.append(action)
        result = session.step(action)
        if result.done:
            return played(world, task_id, actions, chunks=chunks, episode_id=f"e-{task_id}")
        page = result.observation


def lost(
    world: World,
    faults: Sequence[str],
    count: int,
    chunks: Sequence[Chunk] = (),
    split: str = "train",
) -> list[dict[str, Any]]:
    """The first ``count`` tasks that such a shopper loses and a flawless one wins."""
    found = []
    for task_id in world.split(split):
        flawed = trace_of(world, task_id, faults, chunks)
        if flawed["final"]["reward_detail"]["r_success"] == 1:
            continue
        if trace_of(world, task_id, ())["final"]["reward_detail"]["r_success"] == 1:
            found.append(flawed)
        if len(found) == count:
            return found
    raise AssertionError(f"only {len(found)} tasks are lost to {faults}")
