"""The three element-wise operations of the network, with gradients written by hand for the CPU.

At a width of 128 a CPU multiplies matrices faster than autograd walks through the element-wise
operations around them: left to autograd, normalisation and activation cost as much as the products.
Each function does the same arithmetic in fewer passes over memory, forwards and backwards. On a GPU
the library's own fused operations are faster, so there they are used.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

EPSILON = torch.finfo(torch.float32).eps


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    """``x`` [..., d] divided by its root mean square and scaled by ``weight`` [d]."""
    if not x.is_cpu:
        return functional.rms_norm(x, weight.shape, weight, EPSILON)
    if not torch.is_grad_enabled():
        return (x * _inverse_rms(x)).mul_(weight)
    return _RMSNorm.apply(x, weight)  # type: ignore[no-any-return, no-untyped-call]


def squared_relu(x: Tensor) -> Tensor:
    """``max(x, 0)²``."""
    if not x.is_cpu:
        return functional.relu(x).square()
    if not torch.is_grad_enabled():
        return x.clamp_min(0).square_()
    return _SquaredReLU.apply(x)  # type: ignore[no-any-return, no-untyped-call]


def rotate(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Turn the first half of each head's channels by position: pair i with i + D / 4.

    ``x`` [..., D]; ``cosines`` and ``sines`` [..., D / 4] broadcast over its leading dimensions.
    """
    if not x.is_cpu:
        pairs = cosines.shape[-1]
        first, second, still = x[..., :pairs], x[..., pairs : 2 * pairs], x[..., 2 * pairs :]
        turned = (first * cosines - second * sines, second * cosines + first * sines, still)
        return torch.cat(turned, dim=-1)
    return _Rotate.apply(x, cosines, sines)  # type: ignore[no-any-return, no-untyped-call]


def rotate_(x: Tensor, cosines: Tensor, sines: Tensor) -> None:
    """``rotate`` in place, for passes without gradients."""
    pairs = cosines.shape[-1]
    first, second = x[..., :pairs], x[..., pairs : 2 * pairs]
    crossed = first * sines
    first.mul_(cosines).addcmul_(second, sines, value=-1)
    second.mul_(cosines).add_(crossed)


def _inverse_rms(x: Tensor) -> Tensor:
    square = torch.linalg.vecdot(x, x)
    scale: Tensor = square.div_(x.shape[-1]).add_(EPSILON).rsqrt_().unsqueeze(-1)
    return scale


class _RMSNorm(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        scale = _inverse_rms(x)
        unit = x * scale
        ctx.save_for_backward(unit, scale, weight)
        scaled: Tensor = unit * weight
        return scaled

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        unit, scale, weight = ctx.saved_tensors
        weight_grad = (grad * unit).flatten(end_dim=-2).sum(0)
        inner = grad * weight
        # What points along x only changes its length, and the norm takes the length away.
        along = torch.linalg.vecdot(inner, unit).div_(unit.shape[-1]).unsqueeze(-1)
        return inner.addcmul_(unit, along, value=-1).mul_(scale), weight_grad


class _SquaredReLU(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        positive = x.clamp_min(0)
        ctx.save_for_backward(positive)
        squared: Tensor = positive * positive
        return squared

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (positive,) = ctx.saved_tensors
        doubled: Tensor = (grad * positive).mul_(2)
        return doubled


class _Rotate(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
        ctx.save_for_backward(cosines, sines)
        return _turned(x, cosines, sines)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        cosines, sines = ctx.saved_tensors
        return _turned(grad, cosines, -sines), None, None


def _turned(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    pairs = cosines.shape[-1]
    first, second = x[..., :pairs], x[..., pairs : 2 * pairs]
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    torch.mul(first, cosines, out=out[..., :pairs]).addcmul_(second, sines, value=-1)
    torch.mul(second, cosines, out=out[..., pairs : 2 * pairs]).addcmul_(first, sines)
    out[..., 2 * pairs :] = x[..., 2 * pairs :]
    return out
