"""Group-relative advantages over unique rollouts.

Within a group every rollout counts once, however many training rows it was cut into. Arithmetic is
float32 over ascending rollout ids, as in the published run. Specification: training.md §4.10, A5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

STD_EPSILON = 1e-6


@dataclass(frozen=True, slots=True)
class RewardRow:
    """One training row: its group, the rollout it is a part of, and the rollout's reward."""

    group_index: int
    rollout_id: int
    reward: float


def normalise(rows: Sequence[RewardRow], *, std_normalisation: bool) -> list[float]:
    """The advantage of each row, in the given order.

    Reward minus the group's mean, divided by the group's unbiased standard deviation plus 1e-6 when
    ``std_normalisation`` is set and the group has more than one rollout. Raises ValueError when
    rows of one rollout disagree about its reward.
    """
    rewards: dict[int, dict[int, float]] = {}
    for row in rows:
        known = rewards.setdefault(row.group_index, {}).setdefault(row.rollout_id, row.reward)
        if known != row.reward:
            raise ValueError(
                f"group {row.group_index}, rollout {row.rollout_id}: "
                f"its rows carry the rewards {known!r} and {row.reward!r}"
            )
    advantages = {
        group: _group_advantages(of_group, std_normalisation) for group, of_group in rewards.items()
    }
    return [advantages[row.group_index][row.rollout_id] for row in rows]


def _group_advantages(rewards: dict[int, float], std_normalisation: bool) -> dict[int, float]:
    ids = sorted(rewards)
    values = np.array([rewards[rollout] for rollout in ids], dtype=np.float32)
    centred = values - values.mean(dtype=np.float32)
    if std_normalisation and len(ids) > 1:
        centred = centred / (values.std(ddof=1, dtype=np.float32) + np.float32(STD_EPSILON))
    return {rollout: float(value) for rollout, value in zip(ids, centred, strict=True)}
