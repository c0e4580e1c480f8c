"""The warm start: behaviour cloning of the demonstrator, which makes the shipped checkpoint.

``python -m trainer.engines.local.warm_start --out DIR [--device cuda]``

Each step learns a batch of fresh demonstrations: the shopper's own tokens in full, every other
token at a tenth, so that pages are understood as well. Muon moves the matrices of the blocks,
AdamW the rest. Demonstrations of step ``k`` depend on (seed, k) alone, so any number of worker
processes gives the same batches. Tasks come from a pool that shares none with the splits: a policy
that had seen them would look better in training than it is.

A GPU needs minutes, two CPU cores hours. Recipe and figures: docs/design/embedded-policy.md.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from trainer.engines.local.checkpoint import save_checkpoint
from trainer.engines.local.feed import Batch, batches
from trainer.engines.local.model import ModelConfig, TinyTransformer
from trainer.engines.local.tokenizer import WordTokenizer
from trainer.shop.mini.words import vocabulary
from trainer.shop.mini.world import draft_world

logger = logging.getLogger(__name__)

MATMUL_PRECISION = "high"  # TF32 on a GPU; no effect on a CPU


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides the weights, beside the code and the machine's arithmetic."""

    seed: int = 1
    steps: int = 6_000
    batch: int = 256
    pool: int = 60_000
    adamw_rate: float = 2e-3
    muon_rate: float = 3e-3
    warm_up: int = 50
    other_token_weight: float = 0.1
    gradient_clip: float = 1.0

    def scale(self, step: int) -> float:
        """Learning-rate factor: warm-up, constant to the half, then linear down to 2 %."""
        factor = min(1.0, (step + 1) / self.warm_up)
        half = self.steps / 2
        return factor if step < half else factor * max(0.02, (self.steps - step) / half)


class Learner:
    """Model and its two optimisers."""

    def __init__(self, recipe: Recipe, config: ModelConfig, device: str) -> None:
        torch.manual_seed(recipe.seed)
        self.recipe = recipe
        self.device = torch.device(device)
        self.model = TinyTransformer(config).to(self.device)
        named = dict(self.model.named_parameters())
        matrices = [p for name, p in named.items() if p.ndim == 2 and name.startswith("blocks.")]
        chosen = {id(parameter) for parameter in matrices}
        others = [p for p in named.values() if id(p) not in chosen]
        self.optimisers: list[tuple[torch.optim.Optimizer, float]] = [
            (
                torch.optim.AdamW(
                    others, lr=recipe.adamw_rate, betas=(0.9, 0.98), weight_decay=0.0
                ),
                recipe.adamw_rate,
            ),
            (
                torch.optim.Muon(matrices, lr=recipe.muon_rate, momentum=0.95, weight_decay=0.01),
                recipe.muon_rate,
            ),
        ]

    def learn(self, step: int, batch: Batch) -> Tensor:
        """One step; returns the mean loss of the shopper's tokens, still on the device."""
        scale = self.recipe.scale(step)
        for optimiser, rate in self.optimisers:
            for group in optimiser.param_groups:
                group["lr"] = rate * scale
        tokens, shown = (torch.from_numpy(part).to(self.device) for part in batch)
        own, other = self._losses(tokens.long(), shown)
        (own + self.recipe.other_token_weight * other).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.gradient_clip)
        for optimiser, _ in self.optimisers:
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        return own.detach()

    def _losses(self, tokens: Tensor, shown: Tensor) -> tuple[Tensor, Tensor]:
        """Mean cross-entropy of the shopper's tokens, and of all others."""
        targets = tokens[:, 1:]
        logits = self.model(tokens[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
        own = shown[:, 1:].flatten().float()
        other = (targets.flatten() != 0).float() - own
        return (loss * own).sum() / own.sum(), (loss * other).sum() / other.sum()


def train(recipe: Recipe, config: ModelConfig, *, device: str, workers: int) -> TinyTransformer:
    """The trained model, on the CPU."""
    learner = Learner(recipe, config, device)
    started = time.monotonic()
    for step, batch in enumerate(
        batches(recipe.seed, recipe.pool, recipe.steps, recipe.batch, workers=workers)
    ):
        loss = learner.learn(step, batch)
        if step % 100 == 0 or step + 1 == recipe.steps:
            seconds = time.monotonic() - started
            logger.info("step %d  loss %.4f  %.0f s", step + 1, loss.item(), seconds)
    return learner.model.cpu()


def main(arguments: Sequence[str] | None = None) -> None:
    """Make a checkpoint for the embedded world and publish it in a folder."""
    options = _options(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.set_float32_matmul_precision(MATMUL_PRECISION)
    recipe = Recipe(seed=options.seed, steps=options.steps, batch=options.batch, pool=options.pool)
    world = draft_world()
    tokenizer = WordTokenizer(vocabulary())
    model = train(
        recipe,
        ModelConfig(vocabulary_size=len(tokenizer)),
        device=options.device,
        workers=options.workers,
    )
    document = save_checkpoint(
        options.out,
        model,
        tokenizer,
        catalogue_sha256=world.identity()["catalogue_sha256"],
        recipe={
            **asdict(recipe),
            "torch": torch.__version__,
            "device": _device_name(options.device),
            "matmul_precision": MATMUL_PRECISION,
        },
    )
    logger.info("%s in %s", document["checkpoint_id"], options.out)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    default = Recipe()
    parser = argparse.ArgumentParser(description="Clone the demonstrator into a checkpoint.")
    parser.add_argument("--out", type=Path, required=True, help="folder of the new checkpoint")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, …")
    parser.add_argument("--workers", type=int, default=2, help="processes that demonstrate")
    parser.add_argument("--seed", type=int, default=default.seed)
    parser.add_argument("--steps", type=int, default=default.steps)
    parser.add_argument("--batch", type=int, default=default.batch)
    parser.add_argument("--pool", type=int, default=default.pool, help="tasks to demonstrate on")
    return parser.parse_args(arguments)


def _device_name(device: str) -> str:
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device


if __name__ == "__main__":
    main()
