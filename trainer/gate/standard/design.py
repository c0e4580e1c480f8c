"""Who sees what: pairs of complementary masks, balanced over the tasks.

Every task is played twice. What one rollout shows the other hides, so a task's difficulty cancels
in the difference and each slot contributes to every pair. Such a fold-over also clears main effects
of all two-way interactions: a product of two complemented signs is the same in both rollouts.

A base array of n rows is built first. Slots without rewrites take the columns of Hadamard matrices
(one per block of rows, columns permuted and signs flipped at random), whose products sum to zero:
each slot is shown in exactly half of the rollouts and no two are confounded. A family with rewrites
rotates through all ordered pairs of different states, equally often; of several random orders the
one least correlated with the other columns is taken. Then the randomisation proper: rows are dealt
to tasks by a random permutation, and a fair coin decides which rollout of a pair is which. The Gram
matrix Z'Z is the same for every deal, which is what randomisation tests and planning need.

The round is part of every seed, so a slot that survives is drawn anew; the order of the shown
chunks is random in each rollout. Specification: gate-analysis.md §16.2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard

from trainer.canonical import episode_seed
from trainer.gate.assignment import Assignment
from trainer.gate.regression import Array
from trainer.gate.slots import Layout, Slot

SCHEMA = "intraskill-gate-assignments-v1"
FAMILY_DRAWS = 60  # random orders tried for a family
States = NDArray[np.int64]


def seeded(*parts: object) -> np.random.RandomState:
    """A generator whose stream depends on the parts only; numpy keeps this one frozen."""
    digest = hashlib.sha256(":".join(map(str, parts)).encode()).digest()
    return np.random.RandomState(np.frombuffer(digest, dtype=np.uint32))


def base_array(slots: Sequence[Slot], n: int, rng: np.random.RandomState) -> States:
    """States (n, slots, 2) of n complementary pairs: 0 is absent, v the v-th version of a slot."""
    states = np.zeros((n, len(slots), 2), dtype=np.int64)
    plain = [s for s, slot in enumerate(slots) if len(slot.versions) == 1]
    signs = balanced_signs(n, len(plain), rng)
    states[:, plain, 0] = signs > 0
    states[:, plain, 1] = signs < 0
    known = signs.astype(float)
    for s, slot in enumerate(slots):
        if len(slot.versions) > 1:
            states[:, s] = _family_pairs(len(slot.versions), n, known, rng)
            known = np.column_stack([known, differences(states[:, s], len(slot.versions))])
    return states


def balanced_signs(n: int, k: int, rng: np.random.RandomState) -> NDArray[np.int64]:
    """Signs (n, k), orthogonal and balanced over every whole block of rows."""
    if k == 0:
        return np.zeros((n, 0), dtype=np.int64)
    order = 1 << (k - 1).bit_length()
    matrix = hadamard(max(order, 2)).astype(np.int64)
    size = len(matrix)
    blocks = []
    for _ in range(-(-n // size)):
        block = matrix[rng.permutation(size)][:, rng.permutation(size)[:k]]
        blocks.append(block * rng.choice([-1, 1], size=k))
    return np.vstack(blocks)[:n]


def _family_pairs(versions: int, n: int, known: Array, rng: np.random.RandomState) -> States:
    """Ordered pairs (n, 2) of different states, equally often, least correlated with ``known``."""
    states = range(versions + 1)
    pairs = np.array([(a, b) for a in states for b in states if a != b], dtype=np.int64)
    balanced = pairs[np.arange(n) % len(pairs)]
    drawn = [balanced[rng.permutation(n)] for _ in range(FAMILY_DRAWS)]
    return min(drawn, key=lambda each: float(np.sum((known.T @ differences(each, versions)) ** 2)))


def differences(pairs: States, versions: int) -> Array:
    """Columns (n, versions) of Z of one slot: shown first minus shown second, for each version."""
    columns = np.arange(1, versions + 1)
    first = (pairs[:, :1] == columns).astype(float)
    return np.asarray(first - (pairs[:, 1:] == columns))


def deal(
    layout: Layout,
    *,
    task_ids: Sequence[int],
    split: str,
    experiment_seed: int,
    mask_seed: int,
    round_id: str,
    look: int = 0,
    fixed: Mapping[str, str | None] | None = None,
) -> tuple[Assignment, ...]:
    """Two rollouts (samples 0 and 1) for every task, in the order of ``task_ids``.

    ``fixed`` gives the state of slots that an earlier ``look`` has decided: they are not
    randomised.
    """
    fixed = fixed or {}
    label = f"{mask_seed}:{round_id}:{split}:{look}"
    free = [slot for slot in layout.slots if slot.slot_id not in fixed]
    base = base_array(free, len(task_ids), seeded(label, "base"))
    rng = seeded(label, "deal")
    base = base[rng.permutation(len(base))]
    swap = rng.randint(0, 2, size=len(base))
    rows: list[Assignment] = []
    for row, task_id in enumerate(task_ids):
        for sample_id in (0, 1):
            drawn = base[row, :, sample_id ^ swap[row]]
            free_states = {
                slot.slot_id: slot.states[state] for slot, state in zip(free, drawn, strict=True)
            }
            states = {
                slot.slot_id: free_states.get(slot.slot_id, fixed.get(slot.slot_id))
                for slot in layout.slots
            }
            shown = [version for version in states.values() if version is not None]
            place = f"{label}:{task_id}:{sample_id}:order"
            rows.append(
                Assignment(
                    task_id=task_id,
                    sample_id=sample_id,
                    seed=episode_seed(experiment_seed, task_id, sample_id),
                    split=split,
                    slot_states=states,
                    included=tuple(sorted(shown, key=partial(_rank, place))),
                )
            )
    return tuple(rows)


def _rank(place: str, version: str) -> bytes:
    return hashlib.sha256(f"{place}:{version}".encode()).digest()
