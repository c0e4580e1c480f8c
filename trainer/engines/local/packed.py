"""Many episodes in one pass without padding, and a group's prompt only once.

The tokens of a micro-batch lie one after another in a flat list: first each distinct prompt, then
the episodes' own parts. Everything but attention works on that list, so nothing is computed for
padding. Attention is a few padded calls, each an ``AttentionPlan``: rows of similar length, whose
queries see their group's prompt and their own past. The last block is asked only where the policy
chose a token; everywhere else its keys and values are enough. All of that changes the order of
sums, not their value: losses and gradients equal those of whole padded sequences.

An episode's input ends before its last sampled token, which is a target only. Its prompt ends
before the ``<act>`` that precedes the first sampled token: there every sibling asks for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from trainer.engines.local.functional import rotate
from trainer.engines.local.model import PAD_ID, Block, TinyTransformer
from trainer.rollout.policy import TokenRecord

ROWS_PER_CALL = 8

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Piece:
    """An episode cut for packing; ``sampled`` are the places of sampled tokens in ``tokens``."""

    tokens: Ids
    sampled: Ids

    @classmethod
    def of(cls, record: TokenRecord) -> Piece:
        """The episode up to its last sampled token.

        Raises ValueError when nothing was sampled or no prompt of two tokens precedes it.
        """
        sampled = np.flatnonzero(record.loss_mask)
        if not sampled.size or sampled[0] < 2:
            raise ValueError("an episode to train on has a prompt and at least one sampled token")
        return cls(np.array(record.token_ids[: sampled[-1] + 1], dtype=np.int64), sampled)

    @property
    def prompt(self) -> Ids:
        """The tokens it shares with its siblings."""
        return self.tokens[: self.sampled[0] - 1]

    @property
    def own(self) -> Ids:
        """The input tokens after the prompt."""
        return self.tokens[self.sampled[0] - 1 : -1]


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


@dataclass(frozen=True, slots=True)
class PackedBatch:
    """A micro-batch of n tokens.

    ``asked`` [m] are the places whose next token, ``targets`` [m], was sampled: piece after piece.
    ``plans`` cover the whole list in its order, ``last_plan`` covers ``asked``.
    """

    tokens: Tensor
    previous: Tensor
    before_previous: Tensor
    positions: Tensor
    plans: tuple[AttentionPlan, ...]
    last_plan: AttentionPlan
    asked: Tensor
    targets: Tensor


def pack(pieces: Sequence[Piece]) -> PackedBatch:
    """Lay out ``pieces``. Any order is right; pieces sorted by length waste the least."""
    prompts = list({piece.prompt.tobytes(): piece.prompt for piece in pieces}.values())
    number = {prompt.tobytes(): place for place, prompt in enumerate(prompts)}
    parts = [*prompts, *(piece.own for piece in pieces)]
    ends = np.cumsum([len(part) for part in parts])
    places = [np.arange(end - len(part), end) for part, end in zip(parts, ends, strict=True)]
    own = places[len(prompts) :]
    seen = [places[number[piece.prompt.tobytes()]] for piece in pieces]
    asked = [
        place[piece.sampled - piece.sampled[0]] for place, piece in zip(own, pieces, strict=True)
    ]
    alone = [np.empty(0, dtype=np.int64)] * len(prompts)
    plans = [_plan(places[: len(prompts)], alone, places[: len(prompts)])]
    for start in range(0, len(pieces), ROWS_PER_CALL):
        rows = slice(start, start + ROWS_PER_CALL)
        plans.append(_plan(own[rows], seen[rows], own[rows]))
    nothing = np.full(2, PAD_ID)
    before = [nothing] * len(prompts)
    before += [np.concatenate((nothing, piece.prompt))[-2:] for piece in pieces]
    lines = [np.concatenate(pair) for pair in zip(before, parts, strict=True)]
    starts = [0] * len(prompts) + [len(piece.prompt) for piece in pieces]
    return PackedBatch(
        tokens=_joined(parts),
        previous=_joined([line[1:-1] for line in lines]),
        before_previous=_joined([line[:-2] for line in lines]),
        positions=_joined(
            [np.arange(len(part)) + start for part, start in zip(parts, starts, strict=True)]
        ),
        plans=tuple(plans),
        last_plan=_plan(asked, seen, own),
        asked=_joined(asked),
        targets=_joined([piece.tokens[piece.sampled] for piece in pieces]),
    )


def asked_states(model: TinyTransformer, batch: PackedBatch) -> Tensor:
    """Final states [m, width] at ``batch.asked``."""
    turn = model.rotary(batch.positions.unsqueeze(-1))
    stream = model.embed(batch.tokens, batch.previous, batch.before_previous)
    *blocks, last = model.layers
    for block in blocks:
        heads = _turned_heads(block, stream, turn)
        attended = torch.cat([_attend(heads, plan) for plan in batch.plans])
        stream = block.combine(stream, attended)
    attended = _attend(_turned_heads(last, stream, turn), batch.last_plan)
    states: Tensor = model.norm(last.combine(stream.index_select(0, batch.asked), attended))
    return states


def _turned_heads(block: Block, stream: Tensor, turn: tuple[Tensor, Tensor]) -> Heads:
    turning, still = block.project(stream).split_with_sizes((2, 1), dim=1)
    query, key = rotate(turning, *turn).unbind(1)
    return Heads(query, key, still.squeeze(1))


def _attend(heads: Heads, plan: AttentionPlan) -> Tensor:
    """What the real queries of ``plan`` gather [n, H, D]."""
    rows, _, asked, seen = plan.mask.shape
    attended = functional.scaled_dot_product_attention(
        _rows(heads.query, plan.queries, (rows, asked)),
        _rows(heads.key, plan.keys, (rows, seen)),
        _rows(heads.value, plan.keys, (rows, seen)),
        attn_mask=plan.mask,
    )
    return attended.transpose(1, 2).flatten(0, 1).index_select(0, plan.real)


def _rows(flat: Tensor, places: Tensor, shape: tuple[int, int]) -> Tensor:
    """[B, H, L, D] of ``flat`` [N, H, D] at ``places`` [B·L]."""
    return flat.index_select(0, places).view(*shape, *flat.shape[1:]).transpose(1, 2)


def _plan(queries: Sequence[Ids], seen: Sequence[Ids], own: Sequence[Ids]) -> AttentionPlan:
    """Row by row: ``queries``, places in ``own``, see all of ``seen``, and ``own`` up to them."""
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


def _joined(lines: Sequence[Ids]) -> Tensor:
    return torch.from_numpy(np.concatenate(lines))
