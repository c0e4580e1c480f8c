"""What a chunk adds, from differences inside a task.

For task i with rollouts 0 and 1 let Z_i = C_i0 - C_i1 and d_i = y_i0 - y_i1. Then

    d_i = Z_i' beta + gamma (b_i - mean b) T_i + e_i,       T_i = sum_j Z_ij.

Whatever belongs to the task alone has cancelled. The second term adjusts for the bare outcome b_i:
a task that is solved without skills has little to gain, so the more chunks one rollout shows than
the other (T), the more its difference depends on b. Centring b keeps beta the average effect over
all tasks (Lin 2013); tasks without a bare rollout have 0 there. With one row a task, HC3 errors are
clustered by task. Specification: gate-analysis.md §16.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainer.gate.assignment import Assignment, design_matrix
from trainer.gate.regression import Array, Fit, least_squares, rank_of
from trainer.gate.slots import Layout

Outcomes = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Pairs:
    """n tasks, k columns, m outcomes (sorted by name, ``reward`` last).

    ``shown`` (n, 2, k) masks; ``scores`` (n, 2, m); ``bare`` (n, m), NaN where no bare rollout
    exists.
    """

    task_ids: tuple[int, ...]
    columns: tuple[str, ...]
    outcomes: tuple[str, ...]
    shown: Array
    scores: Array
    bare: Array

    @property
    def signs(self) -> Array:
        """Z: what the first rollout shows more than the second (n, k)."""
        return self.shown[:, 0] - self.shown[:, 1]

    @property
    def gains(self) -> Array:
        """d: how much better the first rollout did (n, m)."""
        return self.scores[:, 0] - self.scores[:, 1]

    @property
    def reward(self) -> int:
        """Index of the reward among the outcomes."""
        return self.outcomes.index("reward")

    @property
    def has_bare(self) -> NDArray[np.bool_]:
        """Tasks with a bare rollout (n,)."""
        return ~np.isnan(self.bare[:, self.reward])


def pairs_of(
    rows: Sequence[Assignment],
    columns: Sequence[str],
    masked: Mapping[str, Outcomes],
    bare: Mapping[int, Outcomes],
) -> tuple[Pairs, list[str]]:
    """The complete pairs of a gate, and the episode ids of rollouts whose pair is not complete.

    ``masked`` is keyed by episode id, ``bare`` by task id; ``rows`` hold samples 0 and 1 of each
    task.
    """
    complete: list[tuple[Assignment, Assignment]] = []
    dropped: list[str] = []
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        ids = (first.episode_id, second.episode_id)
        if all(name in masked for name in ids):
            complete.append((first, second))
        else:
            dropped += ids
    names = sorted(next(iter(masked.values()))) if masked else []
    shown = np.stack(
        [design_matrix([pair[s] for pair in complete], columns) for s in (0, 1)], axis=1
    )
    scores = np.array(
        [[[masked[row.episode_id][name] for name in names] for row in pair] for pair in complete]
    )
    missing = dict.fromkeys(names, float("nan"))
    bare_rows = [bare.get(pair[0].task_id, missing) for pair in complete]
    pairs = Pairs(
        task_ids=tuple(pair[0].task_id for pair in complete),
        columns=tuple(columns),
        outcomes=tuple(names),
        shown=shown,
        scores=scores,
        bare=np.array([[row[name] for name in names] for row in bare_rows]),
    )
    return pairs, dropped


def headroom(pairs: Pairs, minimum: int) -> Array:
    """The adjusting column (n, 1), or (n, 0) with fewer than ``minimum`` bare rollouts."""
    known = pairs.has_bare
    if known.sum() < minimum:
        return np.zeros((len(known), 0))
    bare = pairs.bare[:, pairs.reward]
    centred = np.where(known, bare - bare[known].mean(), 0.0)
    column = centred * pairs.signs.sum(axis=1)
    return column[:, None] if np.ptp(column) > 0 else np.zeros((len(known), 0))


def estimate(pairs: Pairs, *, minimum_adjusting: int) -> Fit:
    """Fit all outcomes (n, m) on Z, adjusted for the bare outcome; reported for Z's k columns.

    Where the adjustment cannot be told from the chunks, as in a very small gate, there is none.
    """
    Z = pairs.signs
    X = np.column_stack([Z, headroom(pairs, minimum_adjusting)])
    n, columns = X.shape
    if n <= columns or rank_of(X) < columns:
        X = Z
    return least_squares(X, pairs.gains).first(Z.shape[1])


@dataclass(frozen=True, slots=True)
class Contrast:
    """A rewrite minus its old version: the reward it adds by replacing it."""

    new: str
    old: str
    difference: float
    standard_error: float


def contrasts(
    layout: Layout, columns: Sequence[str], beta: Array, covariance: Array
) -> list[Contrast]:
    """New minus old inside every family, with the covariance of the two estimates."""
    index = {column: position for position, column in enumerate(columns)}
    found: list[Contrast] = []
    for slot in layout.slots:
        if slot.old_version_id is None:
            continue
        old = index[slot.old_version_id]
        for version in slot.versions[1:]:
            new = index[version]
            variance = covariance[new, new] + covariance[old, old] - 2 * covariance[new, old]
            found.append(
                Contrast(
                    version,
                    slot.old_version_id,
                    float(beta[new] - beta[old]),
                    float(np.sqrt(max(variance, 0.0))),
                )
            )
    return found
