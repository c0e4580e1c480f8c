"""Batches of demonstrations, made ahead by worker processes.

Batch ``k`` depends on (seed, k) alone, so any number of workers gives the same batches in the same
order. Nothing here imports torch: a worker starts quickly and needs little memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context

import numpy as np
import numpy.typing as npt

from trainer.engines.local.demonstrations import demonstrations, draw_pool
from trainer.engines.local.tokenizer import WordTokenizer
from trainer.shop.mini.words import vocabulary
from trainer.shop.mini.world import DraftWorld, build_world, draft_world
from trainer.shop.types import Task

#: tokens [B, T] padded with 0, and 1 where the shopper spoke [B, T]
Batch = tuple[npt.NDArray[np.int16], npt.NDArray[np.int8]]

_POOL_SHARDS = 8  # part of the recipe: each shard has a seed of its own
_BATCHES_AHEAD = 4  # a worker


@dataclass(frozen=True, slots=True)
class _Workshop:
    """What a worker process keeps between batches."""

    world: DraftWorld
    tokenizer: WordTokenizer
    pool: Sequence[Task]


_workshop: list[_Workshop] = []


def batches(seed: int, pool: int, count: int, size: int, *, workers: int) -> Iterator[Batch]:
    """``count`` batches of ``size`` demonstrations on ``pool`` tasks, in order."""
    context = get_context("spawn")
    known = list(build_world().tasks.values())
    shard = -(-pool // _POOL_SHARDS)
    with ProcessPoolExecutor(workers, mp_context=context) as executor:
        shards = [
            executor.submit(_pool_shard, known, shard, seed * _POOL_SHARDS + number)
            for number in range(_POOL_SHARDS)
        ]
        tasks = [task for future in shards for task in future.result()]
    with ProcessPoolExecutor(
        workers, mp_context=context, initializer=_start_worker, initargs=(tasks,)
    ) as executor:
        waiting: deque[Future[Batch]] = deque()
        for number in range(count):
            while len(waiting) < _BATCHES_AHEAD * workers and number + len(waiting) < count:
                waiting.append(executor.submit(_draw_batch, seed, number + len(waiting), size))
            yield waiting.popleft().result()


@cache
def _draft() -> DraftWorld:
    return draft_world()


def _pool_shard(known: Sequence[Task], size: int, seed: int) -> list[Task]:
    return draw_pool(_draft(), known, size, seed)


def _start_worker(pool: Sequence[Task]) -> None:
    _workshop[:] = [_Workshop(_draft(), WordTokenizer(vocabulary()), pool)]


def _draw_batch(seed: int, number: int, size: int) -> Batch:
    shop = _workshop[0]
    stream = demonstrations(shop.world, shop.tokenizer, shop.pool, f"{seed}-{number}")
    drawn = [next(stream) for _ in range(size)]
    longest = max(len(one.tokens) for one in drawn)
    tokens = np.zeros((size, longest), np.int16)
    shown = np.zeros((size, longest), np.int8)
    for row, one in enumerate(drawn):
        tokens[row, : len(one.tokens)] = one.tokens
        shown[row, : len(one.shown)] = one.shown
    return tokens, shown
