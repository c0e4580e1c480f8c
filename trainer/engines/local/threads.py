"""How many threads the arithmetic uses: timed once at the start, not guessed.

Two threads are about 1.4 times as fast as one on two free cores, and many times slower when another
process holds one of them, because every parallel loop then waits for the thread that does not run:
the dashboard, the worker or the browser of whoever watches is such a process. So one small forward
and backward pass is timed with each count, and a further thread must pay clearly. The count can
decide the last bits of sums: it is recorded with an experiment, and a run that continues is given
the recorded one.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from trainer.cores import cores
from trainer.engines.local.model import ModelConfig, TinyTransformer
from trainer.errors import InputError

MOST_THREADS = 2
REPEATS = 5
#: more threads must be faster by this factor to be worth their risk
WORTHWHILE = 1.6
PROBE_ROWS, PROBE_LENGTH, PROBE_VOCABULARY = 16, 64, 256


@dataclass(frozen=True, slots=True)
class ThreadChoice:
    """The count in use, and the milliseconds each candidate took (empty when it was given)."""

    threads: int
    milliseconds: Mapping[int, float]


def use_threads(forced: int | None = None) -> ThreadChoice:
    """Choose, or take ``forced``, and set torch and OpenMP to it.

    Raises InputError when ``forced`` is less than 1.
    """
    if forced is not None:
        if forced < 1:
            raise InputError("must be at least 1", field="threads", value=forced)
        choice = ThreadChoice(forced, {})
    else:
        choice = probe()
    torch.set_num_threads(choice.threads)
    os.environ["OMP_NUM_THREADS"] = str(choice.threads)  # for processes started from here
    return choice


def probe() -> ThreadChoice:
    """Time each candidate in turn, several times over, and compare the medians."""
    candidates = range(1, min(MOST_THREADS, cores()) + 1)
    if len(candidates) == 1:
        return ThreadChoice(1, {})
    before = torch.get_num_threads()
    model = TinyTransformer(ModelConfig(PROBE_VOCABULARY))
    times: dict[int, list[float]] = {threads: [] for threads in candidates}
    for repeat in range(REPEATS + 1):
        for threads in candidates:
            torch.set_num_threads(threads)
            took = _one_pass(model)
            if repeat:  # the first pass of each also starts its threads
                times[threads].append(took)
    torch.set_num_threads(before)
    medians = {threads: statistics.median(taken) for threads, taken in times.items()}
    return ThreadChoice(best(medians), medians)


def best(milliseconds: Mapping[int, float]) -> int:
    """The smallest count that no larger one beats by ``WORTHWHILE``."""
    chosen = min(milliseconds)
    for threads in sorted(milliseconds):
        if milliseconds[threads] * WORTHWHILE < milliseconds[chosen]:
            chosen = threads
    return chosen


def _one_pass(model: TinyTransformer) -> float:
    tokens = torch.arange(PROBE_ROWS * PROBE_LENGTH).view(PROBE_ROWS, -1) % PROBE_VOCABULARY
    started = time.perf_counter()
    model(tokens).sum().backward()
    model.zero_grad(set_to_none=True)
    return (time.perf_counter() - started) * 1000
