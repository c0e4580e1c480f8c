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

import numpy as np
import torch
from torch import Tensor

from trainer.engines.local.attention import AttentionPlan, Heads, Ids, attend, attention_plans
from trainer.engines.local.functional import rotate
from trainer.engines.local.model import PAD_ID, Block, TinyTransformer
from trainer.rollout.policy import TokenRecord


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
        plans=attention_plans(own, seen, own),
        asked=torch.from_numpy(asked),
        last_plans=attention_plans(
            *([column[row] for row in asking] for column in (inner, seen, own))
        ),
        answers=torch.from_numpy(answers),
        targets=_joined([piece.tokens[piece.sampled] for piece in pieces]),
    )


def asked_states(model: TinyTransformer, batch: PackedBatch) -> Tensor:
    """Final states [u, width] at ``batch.asked``."""
    turn = model.rotary(batch.positions.unsqueeze(-1))
    stream = model.embed(batch.tokens, batch.previous, batch.before_previous)
    *blocks, last = model.layers
    for block in blocks:
        attended = attend(_turned_heads(block, stream, turn), batch.plans)
        stream = block.combine(stream, attended)
    attended = attend(_turned_heads(last, stream, turn), batch.last_plans)
    states: Tensor = model.norm(last.combine(stream.index_select(0, batch.asked), attended))
    return states


def _turned_heads(block: Block, stream: Tensor, turn: tuple[Tensor, Tensor]) -> Heads:
    turning, still = block.project(stream).split_with_sizes((2, 1), dim=1)
    query, key = rotate(turning, *turn).unbind(1)
    return Heads(query, key, still.squeeze(1))


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


def _joined(lines: Sequence[Ids]) -> Tensor:
    return torch.from_numpy(np.concatenate(lines))
