"""Training the embedded policy: one optimiser update of GRPO at a time.

The loss is that of loss.py, AdamW moves the weights, and the learning rate rises linearly over the
first updates. A learner's state holds everything a continued run needs for the same bits: weights,
moments and the count of updates. Specification: training.md §6.2, embedded-policy.md §5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from trainer.engines.local.adamw import AdamW
from trainer.engines.local.loss import ClipRange, LossSums, micro_batches, summed_loss
from trainer.engines.local.model import TinyTransformer
from trainer.grpo.engine import TrainingEpisode


@dataclass(frozen=True, slots=True)
class UpdateSettings:
    """AdamW and the loss; ``temperature`` is the sampler's.

    ``warmup_updates`` updates raise the learning rate linearly; ``micro_batch`` is how many
    episodes are computed at once, whole groups at least.
    """

    learning_rate: float = 5e-5
    clip: ClipRange = field(default_factory=ClipRange)
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.0
    warmup_updates: int = 5
    gradient_clip: float = 1.0
    micro_batch: int = 32
    temperature: float = 1.0


@dataclass(frozen=True, slots=True)
class UpdateMetrics:
    """What one update did. ``loss`` is divided by ``tokens``, all sampled tokens of the batch; the
    means are over the ``trained_tokens`` of episodes with an advantage.

    ``approx_kl`` is the mean of log p_old - log p_new, ``log_prob_difference`` that of its absolute
    value; in the first update of a step the latter is what sampler and trainer disagree by.
    """

    loss: float
    clip_fraction: float
    approx_kl: float
    entropy: float
    log_prob_difference: float
    max_log_prob_difference: float
    grad_norm: float
    learning_rate: float
    tokens: int
    trained_tokens: int

    def to_record(self) -> dict[str, float]:
        """The metrics under the names of the published run (training.md §5.2), and a few more."""
        return {
            "train/loss": self.loss,
            "train/pg_clipfrac": self.clip_fraction,
            "train/ppo_kl": self.approx_kl,
            "train/entropy_loss": self.entropy,
            "train/train_rollout_logprob_abs_diff": self.log_prob_difference,
            "train/train_rollout_logprob_max_diff": self.max_log_prob_difference,
            "train/grad_norm": self.grad_norm,
            "train/lr-pg_0": self.learning_rate,
            "train/tokens": float(self.tokens),
            "train/trained_tokens": float(self.trained_tokens),
        }


class Learner:
    """A model in training, with its optimiser. ``updates`` counts the updates made so far."""

    def __init__(self, model: TinyTransformer, settings: UpdateSettings) -> None:
        self.model = model
        self.settings = settings
        self.updates = 0
        self.optimiser = AdamW(
            model.parameters(),
            settings.learning_rate,
            betas=settings.betas,
            weight_decay=settings.weight_decay,
        )

    def update(self, episodes: Sequence[TrainingEpisode]) -> UpdateMetrics:
        """Make one update on ``episodes``.

        Without any advantage the weights stay as they are, whatever the moments are. Raises
        ValueError when no token was sampled, and FloatingPointError, with the weights unchanged,
        when the gradient is not finite.
        """
        settings = self.settings
        tokens = sum(sum(episode.tokens.loss_mask) for episode in episodes)
        if tokens == 0:
            raise ValueError(f"{len(episodes)} episodes hold no sampled token to train on")
        self.optimiser.zero_grad()
        sums = LossSums()
        for batch in micro_batches(episodes, settings.micro_batch):
            loss = summed_loss(
                self.model, batch, clip=settings.clip, temperature=settings.temperature, sums=sums
            )
            (loss / tokens).backward()  # type: ignore[no-untyped-call]
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), settings.gradient_clip)
        if not torch.isfinite(norm):
            raise FloatingPointError(f"gradient norm {float(norm)} in update {self.updates + 1}")
        rate = self._learning_rate()
        self.optimiser.learning_rate = rate
        self.optimiser.step()
        self.updates += 1
        count = max(1, sums.tokens)
        return UpdateMetrics(
            loss=sums.loss / tokens,
            clip_fraction=sums.clipped / count,
            approx_kl=-sums.moved / count,
            entropy=sums.entropy / count,
            log_prob_difference=sums.moved_absolutely / count,
            max_log_prob_difference=sums.moved_most,
            grad_norm=float(norm),
            learning_rate=rate,
            tokens=tokens,
            trained_tokens=sums.tokens,
        )

    def state(self) -> dict[str, Any]:
        """Everything a continued run needs; the tensors are the live ones, not copies."""
        return {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "updates": self.updates,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state()``."""
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.updates = state["updates"]

    def _learning_rate(self) -> float:
        warmed = (self.updates + 1) / max(1, self.settings.warmup_updates)
        return self.settings.learning_rate * min(1.0, warmed)
