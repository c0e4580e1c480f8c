"""Many episodes in one pass, with no padding and with every shared beginning computed once.

Siblings share their prompt, and as long as they act alike they read the same pages too. The
episodes of a micro-batch therefore form trees: a *stretch* is a run of turns that the same episodes
have in common, and its parent is what they read before. Stretches lie one after another in a flat
list of tokens, and everything but attention works on that list. Attention is a few padded calls,
each an ``AttentionPlan``: some stretches of similar length, whose tokens see all their ancestors
and what comes before them in the stretch. The last block is asked only where the policy chose a
token; everywhere else its keys and values are enough. All of that changes the order of sums, not
their value: losses and gradients equal those of whole padded sequences.

A turn begins with the ``<act>`` before its first sampled token. An episode's input ends before its
last sampled token, which is a target only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
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


@dataclass(frozen=True)
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

    @cached_property
    def cuts(self) -> list[int]:
        """Where the prompt and each turn begin, and where the input ends."""
        first_of_turn = np.flatnonzero(np.diff(self.sampled, prepend=-1) > 1)
        return [0, *(self.sampled[first_of_turn] - 1).tolist(), len(self.tokens) - 1]

    def part(self, number: int) -> bytes:
        """The prompt (0) or a turn, as something that can be compared."""
        return self.tokens[self.cuts[number] : self.cuts[number + 1]].tobytes()


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


@dataclass(frozen=True, slots=True)
class PackedBatch:
    """A micro-batch of n tokens.

    ``asked`` [u] are the places whose next token was sampled by some episode; ``plans`` cover the
    whole list in its order, ``last_plans`` cover ``asked``. ``targets`` [m] are the sampled tokens,
    episode after episode, and ``answers`` [m] says which of ``asked`` each of them answers.
    """

    tokens: Tensor
    previous: Tensor
    before_previous: Tensor
    positions: Tensor
    plans: tuple[AttentionPlan, ...]
    asked: Tensor
    last_plans: tuple[AttentionPlan, ...]
    answers: Tensor
    targets: Tensor


@dataclass(slots=True)
class _Stretch:
    """Turns that some episodes share: ``tokens`` from position ``start``, after ``parent``."""

    tokens: Ids
    before: Ids  # the two tokens ahead of it
    start: int
    parent: _Stretch | None
    places: Ids

    def seen(self) -> Ids:
        """The places of all its ancestors' tokens, from the beginning."""
        lines = []
        ancestor = self.parent
        while ancestor is not None:
            lines.append(ancestor.places)
            ancestor = ancestor.parent
        return np.concatenate(lines[::-1]) if lines else np.empty(0, dtype=np.int64)


def pack(pieces: Sequence[Piece]) -> PackedBatch:
    """Lay out ``pieces``: the shared parts once, similar lengths together."""
    paths: list[list[_Stretch]] = [[] for _ in pieces]
    stretches = _grow(pieces, range(len(pieces)), 0, None, paths)
    stretches.sort(key=lambda stretch: len(stretch.tokens))
    end = 0
    for stretch in stretches:
        stretch.places = np.arange(end, end + len(stretch.tokens))
        end += len(stretch.tokens)
    lines = [np.concatenate((stretch.before, stretch.tokens)) for stretch in stretches]
    questions = [
        np.concatenate([stretch.places for stretch in path])[piece.sampled - 1]
        for piece, path in zip(pieces, paths, strict=True)
    ]
    asked, answers = np.unique(np.concatenate(questions), return_inverse=True)
    own = [stretch.places for stretch in stretches]
    seen = [stretch.seen() for stretch in stretches]
    inner = [asked[slice(*np.searchsorted(asked, (part[0], part[-1] + 1)))] for part in own]
    asking = [number for number, places in enumerate(inner) if places.size]
    return PackedBatch(
        tokens=_joined([stretch.tokens for stretch in stretches]),
        previous=_joined([line[1:-1] for line in lines]),
        before_previous=_joined([line[:-2] for line in lines]),
        positions=_joined([np.arange(len(s.tokens)) + s.start for s in stretches]),
        plans=_plans(own, seen, own),
        asked=torch.from_numpy(asked),
        last_plans=_plans(*([column[row] for row in asking] for column in (inner, seen, own))),
        answers=torch.from_numpy(answers),
        targets=_joined([piece.tokens[piece.sampled] for piece in pieces]),
    )


def asked_states(model: TinyTransformer, batch: PackedBatch) -> Tensor:
    """Final states [u, width] at ``batch.asked``."""
    turn = model.rotary(batch.positions.unsqueeze(-1))
    stream = model.embed(batch.tokens, batch.previous, batch.before_previous)
    *blocks, last = model.layers
    for block in blocks:
        attended = _attend(_turned_heads(block, stream, turn), batch.plans)
        stream = block.combine(stream, attended)
    attended = _attend(_turned_heads(last, stream, turn), batch.last_plans)
    states: Tensor = model.norm(last.combine(stream.index_select(0, batch.asked), attended))
    return states


class Heads(NamedTuple):
    """Queries, keys and values [N, H, D] of the flat list."""

    query: Tensor
    key: Tensor
    value: Tensor


def _turned_heads(block: Block, stream: Tensor, turn: tuple[Tensor, Tensor]) -> Heads:
    turning, still = block.project(stream).split_with_sizes((2, 1), dim=1)
    query, key = rotate(turning, *turn).unbind(1)
    return Heads(query, key, still.squeeze(1))


def _attend(heads: Heads, plans: Sequence[AttentionPlan]) -> Tensor:
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


def _grow(
    pieces: Sequence[Piece],
    rows: Sequence[int],
    part: int,
    parent: _Stretch | None,
    paths: list[list[_Stretch]],
) -> list[_Stretch]:
    """The stretches below ``parent`` for ``rows``, which share all parts before ``part``."""
    branches: dict[bytes, list[int]] = {}
    for row in rows:
        if part < len(pieces[row].cuts) - 1:
            branches.setdefault(pieces[row].part(part), []).append(row)
    found = []
    for branch in branches.values():
        end = part + 1
        while _share(pieces, branch, end):
            end += 1
        first = pieces[branch[0]]
        start, stop = first.cuts[part], first.cuts[end]
        before = np.concatenate((np.full(2, PAD_ID), first.tokens[:start]))[-2:]
        stretch = _Stretch(first.tokens[start:stop], before, start, parent, np.empty(0, np.int64))
        for row in branch:
            paths[row].append(stretch)
        found += [stretch, *_grow(pieces, branch, end, stretch, paths)]
    return found


def _share(pieces: Sequence[Piece], rows: Sequence[int], part: int) -> bool:
    """Whether all ``rows`` have a part of this number, and the same one."""
    if any(part >= len(pieces[row].cuts) - 1 for row in rows):
        return False
    first = pieces[rows[0]].part(part)
    return all(pieces[row].part(part) == first for row in rows[1:])


def _plans(
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


def _joined(lines: Sequence[Ids]) -> Tensor:
    return torch.from_numpy(np.concatenate(lines))
