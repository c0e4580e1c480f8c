"""Small models with every weight at work, and conversations for them."""

from __future__ import annotations

import random

import torch

from trainer.engines.local.model import ModelConfig, TinyTransformer
from trainer.engines.local.tokenizer import SPECIAL, WordTokenizer
from trainer.rollout.policy import Conversation, Message, TokenRecord

WORDS = tuple(f"w{number}" for number in range(45))
TOKENIZER = WordTokenizer((*SPECIAL, *WORDS))


def small_model(seed: int = 0, *, context: int = 128, layers: int = 3) -> TinyTransformer:
    """A model whose output projections are not zero, so that every part has an effect."""
    torch.manual_seed(seed)
    config = ModelConfig(len(TOKENIZER), width=32, layers=layers, heads=2, context=context)
    model = TinyTransformer(config)
    with torch.no_grad():
        for block in model.layers:
            block.attention_out.weight.normal_(std=0.2)
            block.mlp_out.weight.normal_(std=0.2)
            block.attention_norm.weight.uniform_(0.5, 1.5)
        model.head.weight.normal_(std=0.3)
    return model


def text(rng: random.Random, words: int) -> str:
    """Random words of the small vocabulary."""
    return " ".join(rng.choices(WORDS, k=words))


def conversation(prompt: str, noise_key: str) -> Conversation:
    """A conversation that begins with ``prompt``."""
    first, _, rest = prompt.partition(" ")
    return Conversation((Message("system", first), Message("user", rest)), noise_key)


def episode(rng: random.Random, prompt: list[int], *, turns: int) -> TokenRecord:
    """Tokens as a policy would have left them, with made-up log-probabilities."""
    ids, mask, log_probs = list(prompt), [0] * len(prompt), [0.0] * len(prompt)
    for _ in range(turns):
        drawn = rng.randint(1, 4)
        ids += [*rng.choices(range(5, 50), k=drawn), TOKENIZER.end]
        mask += [1] * (drawn + 1)
        log_probs += [-3.0 * rng.random() - 1.0 for _ in range(drawn + 1)]
        page = rng.randint(2, 9)
        ids += [*rng.choices(range(5, 50), k=page), TOKENIZER.act]
        mask += [0] * (page + 1)
        log_probs += [0.0] * (page + 1)
    return TokenRecord(tuple(ids), tuple(mask), tuple(log_probs))
