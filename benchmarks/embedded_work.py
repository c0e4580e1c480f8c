"""The work that ``embedded.py`` measures: episodes of one shape, and our engine playing them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from trainer.engines.local.model import ModelConfig, TinyTransformer
from trainer.engines.local.policy import LocalPolicy
from trainer.engines.local.tokenizer import SPECIAL, WordTokenizer
from trainer.engines.local.update import Learner, UpdateSettings
from trainer.grpo.engine import TrainingEpisode
from trainer.rollout.policy import Conversation, Message, TokenRecord

LOUD, CERTAIN = 20.0, 10.0  # a channel that stands out, and a weight no other word comes against


@dataclass(frozen=True, slots=True)
class EpisodeShape:
    """One prompt, then ``turns`` turns of ``act WORD <end>`` with a page of ``page`` words between.

    Prompt 44, pages of 14 and 6 turns make 139 tokens, 18 of them sampled.
    """

    words: int = 227
    prompt: int = 44
    page: int = 14
    turns: int = 6
    group: int = 8

    def text(self, rng: random.Random, words: int) -> str:
        """Random words."""
        return " ".join(f"w{rng.randrange(self.words)}" for _ in range(words))


class FixedShapeEngine:
    """Our engine at its default size, with a model that says ``act``, any word, ``<end>``.

    Nothing else is peculiar about it: everything is computed and every token is sampled.
    """

    def __init__(self, shape: EpisodeShape) -> None:
        self.shape = shape
        words = (f"w{number}" for number in range(shape.words))
        self.tokenizer = WordTokenizer((*SPECIAL, "act", *words))
        model = _speaking_model(self.tokenizer)
        self.policy = LocalPolicy(model, self.tokenizer)
        self.learner = Learner(model, UpdateSettings())

    def rollout(self, groups: int, *, seed: int) -> list[list[TrainingEpisode]]:
        """Play ``groups`` groups to their end; the words' numbers are the reward."""
        shape, rng = self.shape, random.Random(seed)
        prompts = [shape.text(rng, shape.prompt) for _ in range(groups)]
        rows = range(groups * shape.group)
        batch = self.policy.begin(
            [
                Conversation((Message("user", prompts[row // shape.group]),), f"{seed}-{row}")
                for row in rows
            ]
        )
        numbers = [0] * len(rows)
        for turn in range(shape.turns):
            replies: dict[int, Sequence[Message]] = {}
            for row, answer in zip(rows, batch.generate(rows, [()] * len(rows)), strict=True):
                _, word = answer.text.split()
                numbers[row] += int(word[1:])
                replies[row] = (Message("user", shape.text(rng, shape.page)),)
            if turn + 1 < shape.turns:
                batch.extend(replies)
        batch.extend({})
        rewards = [number / shape.turns / shape.words for number in numbers]
        return [
            _with_advantages(
                [batch.tokens(row) for row in range(start, start + shape.group)],
                rewards[start : start + shape.group],
            )
            for start in range(0, len(rows), shape.group)
        ]

    def update(self, groups: Sequence[Sequence[TrainingEpisode]]) -> None:
        """One optimiser update on whole groups."""
        self.learner.update([episode for group in groups for episode in group])


def _with_advantages(
    records: Sequence[TokenRecord], rewards: Sequence[float]
) -> list[TrainingEpisode]:
    mean = sum(rewards) / len(rewards)
    return [
        TrainingEpisode(tokens, reward - mean)
        for tokens, reward in zip(records, rewards, strict=True)
    ]


def _speaking_model(tokenizer: WordTokenizer) -> TinyTransformer:
    """Channels 0 to 2 tell ``<act>``, ``act`` and words apart, and the head reads nothing else."""
    torch.manual_seed(0)
    model = TinyTransformer(ModelConfig(len(tokenizer)))
    act, first_word = len(SPECIAL), len(SPECIAL) + 1
    with torch.no_grad():
        for embedding in (model.previous, model.before_previous):
            embedding.weight[:, :3] = 0.0
        model.token.weight[:, :3] = torch.tensor([0.0, 0.0, LOUD])
        model.token.weight[tokenizer.act, :3] = torch.tensor([LOUD, 0.0, 0.0])
        model.token.weight[act, :3] = torch.tensor([0.0, LOUD, 0.0])
        model.head.weight[:, :3] = 0.0
        model.head.weight[act, 0] = CERTAIN
        model.head.weight[first_word:, 1] = CERTAIN
        model.head.weight[tokenizer.end, 2] = CERTAIN
    return model
