"""Confirmation: the new bank against the old one on tasks that the selection did not use.

Chunks were judged one by one under random masks; what will be used is one bundle. A fixed number of
tasks is therefore set aside, in halves that alternate by round, and played with the new bank, the
old bank and none. When the new bank is shown to be worse than the old one, the selection is not
used: the current chunks are held. Specification: gate-analysis.md §16.2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from trainer.compare.bootstrap import Array, bca_interval
from trainer.errors import InputError
from trainer.gate.evaluations import load_run, run_outcomes
from trainer.gate.standard.settings import ARMS

Verdict = Literal["confirmed", "unclear", "refuted"]


def confirmation_tasks(
    task_ids: Sequence[int], count: int, *, round_id: str, label: str
) -> tuple[int, ...]:
    """The tasks set aside in this round: ``count`` of one half of the tasks, halves alternating."""
    half = len(task_ids) // 2
    if count > half:
        raise InputError(
            f"at most half of the {len(task_ids)} tasks can be set aside",
            field="standard.confirm_tasks",
            value=count,
        )

    def rank(task_id: int) -> bytes:
        return hashlib.sha256(f"{label}:confirm:{task_id}".encode()).digest()

    ranked = sorted(task_ids, key=rank)
    number = int("".join(filter(str.isdigit, round_id)) or 0)
    own_half = ranked[:half] if number % 2 == 0 else ranked[half:]
    chosen = set(own_half[:count])
    return tuple(task for task in task_ids if task in chosen)


def confirm(folder: Path, play: Callable[[str, Path], object]) -> dict[str, Any]:
    """Play the three arms and report their differences; ``play(arm, folder)`` plays one of them."""
    rewards: dict[str, dict[str, float]] = {}
    for arm in ARMS:
        play(arm, folder / arm)
        outcomes = run_outcomes(load_run(folder / arm))
        rewards[arm] = {name: found["reward"] for name, found in outcomes.items()}
    shared = sorted(set.intersection(*(set(found) for found in rewards.values())))
    if len(shared) < 2:
        raise InputError("the confirmation has fewer than two complete tasks", file=folder)
    values = {arm: np.array([rewards[arm][name] for name in shared]) for arm in ARMS}
    against_old = _difference(values["new"] - values["old"])
    return {
        "tasks": len(shared),
        "means": {arm: float(values[arm].mean()) for arm in ARMS},
        "new_minus_old": against_old,
        "new_minus_bare": _difference(values["new"] - values["bare"]),
        "verdict": verdict_of(against_old),
    }


def verdict_of(difference: Mapping[str, Any]) -> Verdict:
    """What the 95 % interval of new minus old says."""
    low, high = difference["ci95"]
    if low > 0:
        return "confirmed"
    return "refuted" if high < 0 else "unclear"


def _difference(values: Array) -> dict[str, Any]:
    return {"difference": float(values.mean()), "ci95": list(bca_interval(values))}
