"""The network: its hand-written gradients, its causality, its size."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from tests.trainer.engines.models import small_model
from trainer.engines.local.functional import (
    EPSILON,
    rms_norm,
    rotate,
    rotate_,
    squared_relu,
)
from trainer.engines.local.model import ModelConfig, TinyTransformer
from trainer.errors import InputError


def double(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, dtype=torch.float64, generator=generator).requires_grad_()


def test_the_written_gradients_are_the_true_ones() -> None:
    cosines, sines = double(5, 1, 2).detach(), double(5, 1, 2).detach() * 2
    assert torch.autograd.gradcheck(rms_norm, (double(3, 5, 8), double(8)))
    assert torch.autograd.gradcheck(squared_relu, (double(3, 8),))
    assert torch.autograd.gradcheck(lambda x: rotate(x, cosines, sines), (double(5, 3, 8),))


def test_the_functions_are_those_of_the_library() -> None:
    x, weight = double(4, 8), double(8)
    torch.testing.assert_close(rms_norm(x, weight), functional.rms_norm(x, (8,), weight, EPSILON))
    torch.testing.assert_close(squared_relu(x), functional.relu(x).square())


def test_without_gradients_the_functions_give_the_same_and_leave_their_input() -> None:
    x, weight = double(4, 8), double(8)
    kept = x.clone()
    expected = rms_norm(x, weight), squared_relu(x)
    with torch.no_grad():
        assert torch.equal(rms_norm(x, weight), expected[0])
        assert torch.equal(squared_relu(x), expected[1])
    assert torch.equal(x, kept)
    cosines, sines = torch.rand(4, 2), torch.rand(4, 2)
    turned = double(4, 8).detach().float()
    expected_turned = rotate(turned, cosines, sines)
    rotate_(turned, cosines, sines)
    torch.testing.assert_close(turned, expected_turned)


def test_rotation_turns_half_of_the_channels_and_depends_on_distance_only() -> None:
    model = TinyTransformer(ModelConfig(10, width=32, heads=1, context=64))
    query, key = torch.randn(1, 32), torch.randn(1, 32)

    def score(at: int, other: int) -> float:
        turned = [
            rotate(part, *(table[0] for table in model.rotary(torch.tensor([place]))))
            for part, place in ((query, at), (key, other))
        ]
        return float((turned[0] * turned[1]).sum())

    assert score(9, 4) == pytest.approx(score(35, 30), abs=1e-4)
    assert score(9, 4) != pytest.approx(score(9, 5), abs=1e-3)
    still = rotate(query, *(table[0] for table in model.rotary(torch.tensor([40]))))
    assert torch.equal(still[:, 16:], query[:, 16:])


def test_a_token_never_sees_what_comes_after_it() -> None:
    model = small_model()
    tokens = torch.randint(5, 50, (2, 20))
    changed = tokens.clone()
    changed[:, 12:] = 7
    torch.testing.assert_close(model(tokens)[:, :12], model(changed)[:, :12])
    assert not torch.allclose(model(tokens)[:, 12], model(changed)[:, 12])


def test_the_default_network_is_small_and_starts_as_the_identity() -> None:
    model = TinyTransformer(ModelConfig(256))
    assert sum(parameter.numel() for parameter in model.parameters()) == 256 * 128 * 4 + 590_720
    tokens = torch.randint(5, 256, (2, 9))
    before = model.norm(
        model.embed(tokens, *(functional.pad(tokens, (n, 0))[:, :9] for n in (1, 2)))
    )
    torch.testing.assert_close(model.hidden(tokens), before)


def test_a_sequence_beyond_the_context_is_refused() -> None:
    with pytest.raises(InputError, match="context of 128 tokens"):
        small_model().hidden(torch.zeros(1, 129, dtype=torch.long))
