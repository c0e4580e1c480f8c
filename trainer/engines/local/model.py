"""The embedded policy's network: a transformer small enough to train on two cores.

Three things differ from the textbook, each because it lowers the number of demonstrations needed
(see docs/design/embedded-policy.md):

* the input is the sum of three embeddings, of the token, the one before and the one before that, so
  word pairs are features without a layer, and incremental decoding needs only the last two ids;
* rotary positions turn half of each head's channels; the rest matches content wherever it stands;
* output projections start at zero, the activation is a squared ReLU, the head is not tied.

Shapes: B rows, T tokens, V words, H heads of width D = width / heads. Everything is float32.

``hidden`` is the plain pass over whole sequences: the warm start and the tests use it. The cached
sampler (cache.py) and the packed update (packed.py) take the same blocks through their own order of
tokens, and must give the same numbers.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.engines.local.functional import rms_norm, rotate, squared_relu
from trainer.errors import InputError

PAD_ID = 0


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Size of the network. ``context`` is the longest episode in tokens."""

    vocabulary_size: int
    width: int = 128
    layers: int = 3
    heads: int = 4
    mlp_ratio: int = 4
    context: int = 512
    rotary_base: float = 1000.0

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    def to_record(self) -> dict[str, int | float]:
        return asdict(self)


class RMSNorm(nn.Module):
    """Divide by the root mean square over the last dimension, times a learnt scale."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return rms_norm(x, self.weight)


class Block(nn.Module):
    """Attention and MLP, each behind an RMS norm and added to the stream.

    The attention itself is the caller's, who knows how the sequences lie.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.width
        self.heads = config.heads
        self.attention_norm = RMSNorm(width)
        self.mlp_norm = RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.attention_out = nn.Linear(width, width, bias=False)
        self.mlp_in = nn.Linear(width, config.mlp_ratio * width, bias=False)
        self.mlp_out = nn.Linear(config.mlp_ratio * width, width, bias=False)
        nn.init.zeros_(self.attention_out.weight)
        nn.init.zeros_(self.mlp_out.weight)

    def project(self, x: Tensor) -> Tensor:
        """Queries, keys and values [..., 3, H, D] of the stream ``x`` [..., width], not turned."""
        qkv: Tensor = self.qkv(self.attention_norm(x))
        return qkv.view(*x.shape[:-1], 3, self.heads, x.shape[-1] // self.heads)

    def combine(self, x: Tensor, attended: Tensor) -> Tensor:
        """Add what attention gathered (``attended`` [..., H, D]) and the MLP's answer to ``x``."""
        x = x + self.attention_out(attended.flatten(-2))
        out: Tensor = x + self.mlp_out(squared_relu(self.mlp_in(self.mlp_norm(x))))
        return out


class TinyTransformer(nn.Module):
    """Decoder-only policy over words. ``forward`` is for whole sequences; caches use the parts."""

    cosines: Tensor
    sines: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        size, width = config.vocabulary_size, config.width
        self.token = nn.Embedding(size, width)
        self.previous = nn.Embedding(size, width)
        self.before_previous = nn.Embedding(size, width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = RMSNorm(width)
        self.head = nn.Linear(width, size, bias=False)
        for embedding in (self.token, self.previous, self.before_previous):
            nn.init.normal_(embedding.weight, std=0.5)
        nn.init.normal_(self.head.weight, std=0.02)
        cosines, sines = _rotary_tables(config)
        self.register_buffer("cosines", cosines, persistent=False)
        self.register_buffer("sines", sines, persistent=False)

    def embed(self, tokens: Tensor, previous: Tensor, before_previous: Tensor) -> Tensor:
        """Embeddings [..., width] of ``tokens`` [...] and the two before each; padding for none."""
        stream: Tensor = (
            self.token(tokens) + self.previous(previous) + self.before_previous(before_previous)
        )
        return stream

    @property
    def layers(self) -> tuple[Block, ...]:
        """The blocks in order, typed as what they are."""
        return tuple(cast(Block, block) for block in self.blocks)

    def rotary(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines of ``positions`` [...], shaped [..., 1, D / 4] to meet the heads."""
        return self.cosines[positions].unsqueeze(-2), self.sines[positions].unsqueeze(-2)

    def hidden(self, tokens: Tensor) -> Tensor:
        """Final states [B, T, width] of right-padded sequences ``tokens`` [B, T].

        Raises InputError when they are longer than the context.
        """
        length = tokens.shape[1]
        if length > self.config.context:
            raise InputError(
                f"sequences longer than the context of {self.config.context} tokens",
                field="tokens",
                value=length,
            )
        extended = functional.pad(tokens, (2, 0), value=PAD_ID)
        stream = self.embed(tokens, extended[:, 1:-1], extended[:, :-2])
        cosines, sines = self.rotary(torch.arange(length, device=tokens.device))
        for block in self.layers:
            query, key, value = block.project(stream).unbind(-3)
            attended = functional.scaled_dot_product_attention(
                rotate(query, cosines, sines).transpose(1, 2),
                rotate(key, cosines, sines).transpose(1, 2),
                value.transpose(1, 2),
                is_causal=True,
            )
            stream = block.combine(stream, attended.transpose(1, 2))
        states: Tensor = self.norm(stream)
        return states

    def logits(self, states: Tensor) -> Tensor:
        """Logits [..., V] of states [..., width]."""
        out: Tensor = self.head(states)
        return out

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits [B, T, V]."""
        return self.logits(self.hidden(tokens))


def _rotary_tables(config: ModelConfig) -> tuple[Tensor, Tensor]:
    """Cosines and sines [context, D / 4]."""
    half = config.head_width // 2
    frequencies = config.rotary_base ** -(torch.arange(0, half, 2, dtype=torch.float64) / half)
    angles = torch.outer(torch.arange(config.context, dtype=torch.float64), frequencies)
    return angles.cos().float(), angles.sin().float()
