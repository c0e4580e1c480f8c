"""The embedded policy's network: a transformer small enough to train on two cores.

Three things differ from the textbook, each because it lowers the number of demonstrations needed (see
docs/design/embedded-policy.md):

* the input is the sum of three embeddings, of the token, the one before and the one before that, so
  word pairs are features without a layer, and incremental decoding needs only the last two ids;
* rotary positions turn half of each head's channels; the rest matches content wherever it stands;
* output projections start at zero, the activation is a squared ReLU, the head is not tied.

Shapes: B rows, T tokens, V words, H heads of width D = width / heads. Everything is float32.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

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


def rotate(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Turn the first half of each head's channels by position.

    ``x`` [..., T, D]; ``cosines`` and ``sines`` [..., T, D / 4].
    """
    quarter = cosines.shape[-1]
    first, second, still = x[..., :quarter], x[..., quarter : 2 * quarter], x[..., 2 * quarter :]
    turned = (first * cosines - second * sines, second * cosines + first * sines, still)
    return torch.cat(turned, dim=-1)


class Block(nn.Module):
    """Attention and MLP, each behind an RMS norm and added to the stream."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.width
        self.heads = config.heads
        self.attention_norm = nn.RMSNorm(width)
        self.mlp_norm = nn.RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.attention_out = nn.Linear(width, width, bias=False)
        self.mlp_in = nn.Linear(width, config.mlp_ratio * width, bias=False)
        self.mlp_out = nn.Linear(config.mlp_ratio * width, width, bias=False)
        nn.init.zeros_(self.attention_out.weight)
        nn.init.zeros_(self.mlp_out.weight)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values [B, H, T, D] of the stream ``x`` [B, T, width]."""
        batch, length, width = x.shape
        qkv = self.qkv(self.attention_norm(x))
        query, key, value = (
            qkv.view(batch, length, 3, self.heads, width // self.heads)
            .permute(2, 0, 3, 1, 4)
            .unbind(0)
        )
        return query, key, value

    def combine(self, x: Tensor, attended: Tensor) -> Tensor:
        """Add what attention gathered (``attended`` [B, H, T, D]) and the MLP's answer to ``x``."""
        x = x + self.attention_out(attended.transpose(1, 2).flatten(2))
        hidden = functional.relu(self.mlp_in(self.mlp_norm(x))).square()
        out: Tensor = x + self.mlp_out(hidden)
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
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, size, bias=False)
        for embedding in (self.token, self.previous, self.before_previous):
            nn.init.normal_(embedding.weight, std=0.5)
        nn.init.normal_(self.head.weight, std=0.02)
        cosines, sines = _rotary_tables(config)
        self.register_buffer("cosines", cosines, persistent=False)
        self.register_buffer("sines", sines, persistent=False)

    def embed(self, tokens: Tensor, context: Tensor | None = None) -> Tensor:
        """Embeddings [B, T, width] of ``tokens`` [B, T].

        ``context`` [B, 2] are the two tokens before the first one; padding where there are none.
        """
        if context is None:
            extended = functional.pad(tokens, (2, 0), value=PAD_ID)
        else:
            extended = torch.cat((context, tokens), dim=1)
        stream: Tensor = (
            self.token(tokens)
            + self.previous(extended[:, 1:-1])
            + self.before_previous(extended[:, :-2])
        )
        return stream

    def hidden(self, tokens: Tensor) -> Tensor:
        """Final states [B, T, width] of right-padded sequences ``tokens`` [B, T]."""
        length = tokens.shape[1]
        cosines, sines = self.cosines[:length], self.sines[:length]
        stream = self.embed(tokens)
        for block in self.blocks:
            query, key, value = block.project(stream)
            attended = functional.scaled_dot_product_attention(
                rotate(query, cosines, sines), rotate(key, cosines, sines), value, is_causal=True
            )
            stream = block.combine(stream, attended)
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
