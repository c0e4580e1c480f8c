"""The clipped token-level policy gradient of GRPO.

For a sampled token of an episode with advantage A, let r be its probability now over the
probability it was sampled with. Its loss is ``max(-r·A, -clip(r, low, high)·A)``. A batch's loss is
the sum over its sampled tokens, divided by their number. Tokens of prompts and pages only ever are
context. Episodes without an advantage count in the divisor and are not computed. Old
log-probabilities are the sampler's own, so the first update after a rollout starts at r = 1.

Specification: training.md §4.6; embedded-policy.md §5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from trainer.engines.local.model import TinyTransformer
from trainer.engines.local.packed import PackedBatch, Piece, asked_states, pack
from trainer.grpo.engine import TrainingEpisode

#: what single precision leaves of a tie
NEGLIGIBLE_ADVANTAGE = 1e-7


@dataclass(frozen=True, slots=True)
class ClipRange:
    """Where the ratio of probabilities stops to matter."""

    low: float = 0.8
    high: float = 1.28


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Packed episodes; ``advantages`` and ``old`` log-probabilities [m], one a sampled token."""

    packed: PackedBatch
    advantages: Tensor
    old: Tensor


@dataclass(slots=True)
class LossSums:
    """Sums over the sampled tokens that were computed; ``moved`` is log p_new - log p_old."""

    loss: float = 0.0
    tokens: int = 0
    clipped: float = 0.0
    entropy: float = 0.0
    moved: float = 0.0
    moved_absolutely: float = 0.0
    moved_most: float = 0.0

    def add(self, loss: Tensor, clipped: Tensor, entropy: Tensor, moved: Tensor) -> None:
        """Add one micro-batch: a scalar, and three values a token [m]."""
        distance = moved.abs()
        self.loss += float(loss)
        self.tokens += moved.numel()
        self.clipped += float(clipped.sum())
        self.entropy += float(entropy.sum())
        self.moved += float(moved.sum())
        self.moved_absolutely += float(distance.sum())
        self.moved_most = max(self.moved_most, float(distance.max()))


def micro_batches(episodes: Sequence[TrainingEpisode], size: int) -> Iterator[MicroBatch]:
    """The episodes that carry a gradient: whole groups of siblings, about ``size`` at once.

    Siblings are those with the same prompt; groups with prompts of similar length go together.
    """
    groups: dict[bytes, list[tuple[Piece, float, Tensor]]] = {}
    for episode in episodes:
        tied = abs(episode.advantage) <= NEGLIGIBLE_ADVANTAGE  # and a NaN is not: it must surface
        if not tied and any(episode.tokens.loss_mask):
            piece = Piece.of(episode.tokens)
            old = torch.tensor([episode.tokens.log_probs[place] for place in piece.sampled])
            row = (piece, episode.advantage, old)
            groups.setdefault(piece.part(0), []).append(row)
    waiting: list[tuple[Piece, float, Tensor]] = []
    for group in sorted(groups.values(), key=lambda group: group[0][0].cuts[1]):
        if waiting and len(waiting) + len(group) > size:
            yield _micro_batch(waiting)
            waiting = []
        waiting += group
    if waiting:
        yield _micro_batch(waiting)


def summed_loss(
    model: TinyTransformer,
    batch: MicroBatch,
    *,
    clip: ClipRange,
    temperature: float,
    sums: LossSums,
) -> Tensor:
    """The loss of the micro-batch, summed over its tokens; what was seen is added to ``sums``."""
    logits = model.logits(asked_states(model, batch.packed)) / temperature
    log_probs = torch.log_softmax(logits, dim=-1)
    moved = log_probs[batch.packed.answers, batch.packed.targets] - batch.old
    ratio = moved.exp()
    free = -ratio * batch.advantages
    bound = -ratio.clamp(clip.low, clip.high) * batch.advantages
    loss = torch.maximum(free, bound).sum()
    with torch.no_grad():
        entropy = -(log_probs.exp() * log_probs).sum(dim=-1)[batch.packed.answers]
        sums.add(loss, bound > free, entropy, moved)
    return loss


def _micro_batch(rows: Sequence[tuple[Piece, float, Tensor]]) -> MicroBatch:
    advantages = [np.full(len(piece.sampled), advantage) for piece, advantage, _ in rows]
    return MicroBatch(
        packed=pack([piece for piece, _, _ in rows]),
        advantages=torch.from_numpy(np.concatenate(advantages)).float(),
        old=torch.cat([old for _, _, old in rows]),
    )
