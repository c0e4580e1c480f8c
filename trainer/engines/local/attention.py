"""Attention over a flat list of tokens: which of them see which, in a few padded calls.

Sequences of different lengths, some of them the continuation of others, lie one after another in a
list. A call takes some rows of it: each row's queries, and the keys they may see. Rows of similar
length go together, so that little is padded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

ROWS_PER_CALL = 8

Ids = NDArray[np.int64]


class AttentionPlan(NamedTuple):
    """One padded attention call over the flat list of tokens.

    ``queries`` [B·S] and ``keys`` [B·K] are places in the list (padding repeats some place of it),
    ``mask`` [B, 1, S, K] is true where a query may look, ``real`` [n] are the places in B·S of the
    queries that are no padding.
    """

    queries: Tensor
    keys: Tensor
    mask: Tensor
    real: Tensor


class Heads(NamedTuple):
    """Queries, keys and values [N, H, D] of the flat list."""

    query: Tensor
    key: Tensor
    value: Tensor


def attend(heads: Heads, plans: Sequence[AttentionPlan]) -> Tensor:
    """What the real queries of ``plans`` gather [n, H, D]."""
    gathered = []
    for plan in plans:
        rows, _, asked, seen = plan.mask.shape
        attended = functional.scaled_dot_product_attention(
            _rows(heads.query, plan.queries, (rows, asked)),
            _rows(heads.key, plan.keys, (rows, seen)),
            _rows(heads.value, plan.keys, (rows, seen)),
            attn_mask=plan.mask,
        )
        gathered.append(attended.transpose(1, 2).flatten(0, 1).index_select(0, plan.real))
    return torch.cat(gathered)


def _rows(flat: Tensor, places: Tensor, shape: tuple[int, int]) -> Tensor:
    """[B, H, L, D] of ``flat`` [N, H, D] at ``places`` [B·L]."""
    return flat.index_select(0, places).view(*shape, *flat.shape[1:]).transpose(1, 2)


def attention_plans(
    queries: Sequence[Ids], seen: Sequence[Ids], own: Sequence[Ids]
) -> tuple[AttentionPlan, ...]:
    """Plans for rows of ``queries``, places in ``own`` that see ``seen`` and ``own`` up to them."""
    cuts = range(0, len(queries), ROWS_PER_CALL)
    return tuple(
        _plan(*(column[start : start + ROWS_PER_CALL] for column in (queries, seen, own)))
        for start in cuts
    )


def _plan(queries: Sequence[Ids], seen: Sequence[Ids], own: Sequence[Ids]) -> AttentionPlan:
    rows = len(queries)
    asked, before, after = (max(map(len, column)) for column in (queries, seen, own))
    table, reach = np.zeros((2, rows, asked), dtype=np.int64)
    keys = np.zeros((rows, before + after), dtype=np.int64)
    mask = np.zeros((rows, asked, before + after), dtype=np.bool_)
    for row, (query, shared, past) in enumerate(zip(queries, seen, own, strict=True)):
        table[row, : len(query)] = query
        reach[row, : len(query)] = query - past[0]
        keys[row, : len(shared)] = shared
        keys[row, before : before + len(past)] = past
        mask[row, :, : len(shared)] = True
    mask[:, :, before:] = np.arange(after) <= reach[:, :, None]
    sizes = np.array([[len(query)] for query in queries])
    return AttentionPlan(
        queries=torch.from_numpy(table.ravel()),
        keys=torch.from_numpy(keys.ravel()),
        mask=torch.from_numpy(mask).unsqueeze(1),
        real=torch.from_numpy(np.flatnonzero(np.arange(asked) < sizes)),
    )
