"""Reading many traces on all cores: the traces of a run are most of the work of an analysis.

Each unit of work is one evaluation or a few step files; units do not depend on each other and come
back in order, so the result is the same on any number of cores. Children are forked: they compute
on plain values and touch nothing else.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

from trainer.cores import cores

Item = TypeVar("Item")
Made = TypeVar("Made")
MOST = 8


def in_order(work: Callable[[Item], Made], items: Sequence[Item]) -> list[Made]:
    """``work`` of every item; serially where forking is not safe or not worth it."""
    workers = min(MOST, cores(), len(items))
    forks = "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1
    if workers < 2 or not forks or multiprocessing.current_process().daemon:
        return [work(item) for item in items]
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(max_workers=workers, mp_context=context) as pool:
        return list(pool.map(work, items))
