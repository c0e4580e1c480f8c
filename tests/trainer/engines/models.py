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


def turn(rng: random.Random) -> tuple[list[int], list[int]]:
    """Some drawn words with their end, and a page that ends with the next ``<act>``."""
    drawn = [*rng.choices(range(5, 50), k=rng.randint(1, 4)), TOKENIZER.end]
    return drawn, [*rng.choices(range(5, 50), k=rng.randint(2, 9)), TOKENIZER.act]


def record(prompt: list[int], turns: list[tuple[list[int], list[int]]]) -> TokenRecord:
    """Tokens as a policy would have left them, with made-up log-probabilities."""
    luck = random.Random(str((prompt, turns)))
    ids, mask = list(prompt), [0] * len(prompt)
    for drawn, page in turns:
        ids += [*drawn, *page]
        mask += [1] * len(drawn) + [0] * len(page)
    log_probs = [-3.0 * luck.random() - 1.0 if bit else 0.0 for bit in mask]
    return TokenRecord(tuple(ids), tuple(mask), tuple(log_probs))


def episode(rng: random.Random, prompt: list[int], *, turns: int) -> TokenRecord:
    """An episode that has nothing but its prompt in common with others."""
    return record(prompt, [turn(rng) for _ in range(turns)])


def siblings(rng: random.Random, prompt: list[int], count: int) -> list[TokenRecord]:
    """Episodes that act alike for a while: each follows an earlier one for some of its turns."""
    played: list[list[tuple[list[int], list[int]]]] = [[]]
    for _ in range(count):
        model = rng.choice(played)
        kept = model[: rng.randint(0, len(model))]
        played.append(kept + [turn(rng) for _ in range(rng.randint(0 if kept else 1, 3))])
    return [record(prompt, turns) for turns in played[1:]]
