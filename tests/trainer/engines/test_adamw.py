"""The optimiser of the embedded policy against torch's own class."""

from __future__ import annotations

import subprocess
import sys

import torch

from trainer.engines.local.adamw import AdamW

UPDATE = """
import sys, torch
from trainer.engines.local.model import ModelConfig, TinyTransformer
from trainer.engines.local.update import Learner, UpdateSettings
learner = Learner(TinyTransformer(ModelConfig(32)), UpdateSettings())
learner.model(torch.arange(8).view(1, -1)).sum().backward()
learner.optimiser.step()
learner.optimiser.zero_grad()
learner.state()
print([name for name in ("torch._dynamo", "torch._inductor") if name in sys.modules])
"""


def parameters() -> list[torch.Tensor]:
    draw = torch.Generator().manual_seed(3)
    shapes = ((7, 5), (5,), (2, 3))
    return [torch.randn(*shape, generator=draw).requires_grad_() for shape in shapes]


def gradients(of: list[torch.Tensor], step: int) -> None:
    """The last parameter has no gradient in the first step, and one of zeros in the second."""
    draw = torch.Generator().manual_seed(step)
    for tensor in of:
        tensor.grad = torch.randn(tensor.shape, generator=draw)
    of[-1].grad = None if step == 0 else torch.zeros(of[-1].shape) if step == 1 else of[-1].grad


def test_steps_are_those_of_the_class_bit_for_bit_and_its_state_is_read() -> None:
    ours, theirs, continued = parameters(), parameters(), parameters()
    mine = AdamW(ours, 1e-2, betas=(0.9, 0.95), weight_decay=0.1)
    reference = torch.optim.AdamW(theirs, lr=1e-2, betas=(0.9, 0.95), weight_decay=0.1)
    for step in range(4):
        rate = 1e-2 / (step + 1)
        mine.learning_rate = reference.param_groups[0]["lr"] = rate
        gradients(ours, step)
        gradients(theirs, step)
        mine.step()
        reference.step()
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True)), step
    later = AdamW(continued, 1e-3, betas=(0.9, 0.95), weight_decay=0.1)
    later.load_state_dict(reference.state_dict())
    with torch.no_grad():
        for tensor, value in zip(continued, theirs, strict=True):
            tensor.copy_(value)
    mine.learning_rate = 1e-3
    for optimiser, tensors in ((mine, ours), (later, continued)):
        gradients(tensors, 9)
        optimiser.step()
        optimiser.zero_grad()
        assert all(tensor.grad is None for tensor in tensors)
    assert all(torch.equal(a, b) for a, b in zip(ours, continued, strict=True))


def test_an_update_does_not_import_the_compiler_of_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-c", UPDATE], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
