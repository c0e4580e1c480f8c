"""Scripts that shop: what the scripted engine says to win or lose in the built-in shop."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from tests.contracts.toy_tokenizer import answer
from trainer.shop.world import World, load_world

Play = list[Any]


@lru_cache(maxsize=1)
def world() -> World:
    """The built-in standard shop: function tools, sixty tasks."""
    return load_world("standard")


@lru_cache(maxsize=1)
def tasks() -> tuple[int, ...]:
    """Its training tasks."""
    return world().split("train")


def winning(task_id: int) -> Play:
    """Every turn of an episode that buys exactly what is wanted."""
    task = world().task(task_id)
    return _buy(task.asin, task.name, set(task.goal_options))


def losing(task_id: int) -> Play:
    """The same with another product: scored, and wrong."""
    wanted = world().task(task_id)
    other = next(
        product
        for product in world().catalogue.products.values()
        if product.category != wanted.category
    )
    return _buy(other.asin, other.title, set())


def _buy(asin: str, title: str, options: set[str]) -> Play:
    product = world().catalogue.products[asin]
    turns = [answer("search", query=title), answer("click", value=asin)]
    for axis, values in product.options.items():
        value = next((value for value in values if value in options), values[0])
        turns.append(answer("click", value=f"{axis}={value}"))
    return [*turns, answer("click", value="buy now")]


def by_session(choose: Callable[[int, int, bool], Play]) -> Callable[[str, int], Any]:
    """A script from ``choose(group, sample, is_retry)``; after its end nothing is said."""

    def script(session: str, turn: int) -> Any:
        parts = session.split("-")
        play = choose(int(parts[2]), int(parts[3]), parts[-1] == "retry")
        return play[turn - 1] if turn <= len(play) else "nothing more to say"

    return script
