"""64 episodes, one by one in process and all at once on a service."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from trainer.shop.client import ShopClient
from trainer.shop.remote import RemoteSession
from trainer.shop.session import ShopSession
from trainer.shop.types import Action, Observation, StepResult
from trainer.shop.world import World

CLIENTS = 64


def play(session: Any, seed: int) -> list[Observation | StepResult]:
    """A whole episode of seeded clicks, words and mistakes: everything the shop answered."""
    rng = random.Random(seed)
    page = session.reset()
    trace: list[Observation | StepResult] = [page]
    while not session.done:
        actions = [*page.state["actions"], "buy now", "nonsense"]
        if page.state["search_available"]:
            action = Action("search", rng.choice(("台灯", "保温杯 500ml", "kettle", "书架")))
        else:
            action = Action("click", rng.choice(actions))
        result = session.step(action)
        page = result.observation
        trace.append(result)
    return trace


def one_by_one(world: World) -> list[list[Observation | StepResult]]:
    """The episodes of all seeds, in process."""
    tasks = sorted(world.tasks)
    return [play(ShopSession(world, tasks[seed % len(tasks)]), seed) for seed in range(CLIENTS)]


def at_once(address: str, world: World) -> list[list[Observation | StepResult]]:
    """The same episodes on a service of ``world``, each by a client of its own, all at once."""
    tasks = sorted(world.tasks)

    def episode(seed: int) -> list[Observation | StepResult]:
        with ShopClient(address, attempts=30, owner=f"client-{seed}") as client:
            return play(RemoteSession(client, tasks[seed % len(tasks)]), seed)

    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(episode, range(CLIENTS)))
