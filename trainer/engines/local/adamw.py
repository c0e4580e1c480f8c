"""AdamW with the arithmetic of torch, without the class around it.

The first call of any ``torch.optim.Optimizer`` imports torch's compiler, two seconds of every
training process, for a step of some milliseconds; ``torch.optim.adamw.adamw``, the documented
function that those classes call, does not. The state is kept under the class's names, so states
that the class wrote are read as well. The formula: Loshchilov and Hutter, arXiv:1711.05101,
algorithm 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch.optim.adamw import adamw

MOMENTS = ("step", "exp_avg", "exp_avg_sq")
EPSILON = 1e-8  # torch's default


class AdamW:
    """Moves ``parameters`` by their gradients. ``learning_rate`` may be changed between steps."""

    def __init__(
        self,
        parameters: Iterable[torch.Tensor],
        learning_rate: float,
        *,
        betas: tuple[float, float],
        weight_decay: float,
    ) -> None:
        self.parameters = list(parameters)
        self.learning_rate = learning_rate
        self.betas = betas
        self.weight_decay = weight_decay
        self._moments: dict[int, dict[str, torch.Tensor]] = {}

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """One step; parameters without a gradient, and their moments, stay as they are."""
        moved = [n for n, p in enumerate(self.parameters) if p.grad is not None]
        for number in moved:
            if number not in self._moments:
                self._moments[number] = _zero_moments(self.parameters[number])
        steps, means, squares = (
            [self._moments[number][name] for number in moved] for name in MOMENTS
        )
        adamw(
            [self.parameters[number] for number in moved],
            [g for number in moved if (g := self.parameters[number].grad) is not None],
            means,
            squares,
            [],
            steps,
            amsgrad=False,
            beta1=self.betas[0],
            beta2=self.betas[1],
            lr=self.learning_rate,
            weight_decay=self.weight_decay,
            eps=EPSILON,
            maximize=False,
        )

    def state_dict(self) -> dict[str, Any]:
        """The moments by the parameter's number; live tensors, not copies."""
        return {"state": {number: dict(moments) for number, moments in self._moments.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict()``, or from that of ``torch.optim.AdamW``."""
        self._moments = {
            number: {name: moments[name].clone() for name in MOMENTS}
            for number, moments in state["state"].items()
        }


def _zero_moments(parameter: torch.Tensor) -> dict[str, torch.Tensor]:
    return {
        "step": torch.zeros((), dtype=torch.float32),
        "exp_avg": torch.zeros_like(parameter, memory_format=torch.preserve_format),
        "exp_avg_sq": torch.zeros_like(parameter, memory_format=torch.preserve_format),
    }
