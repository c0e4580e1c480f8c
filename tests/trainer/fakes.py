"""Policies and engines that are fast and exactly predictable, for tests of what surrounds them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainer.canonical import fingerprint
from trainer.files import read_json, write_json
from trainer.grpo.engine import TrainingEpisode
from trainer.rollout.policy import Conversation, Message, ModelTurn, TokenRecord, ToolCall

Answer = Callable[[Conversation, int], ModelTurn]


def words(text: str, *, finish: str = "stop") -> ModelTurn:
    """A turn of a word policy with plausible tokens."""
    ids = tuple(sum(word.encode()) for word in text.split()) or (0,)
    return ModelTurn(
        text,
        finish,  # type: ignore[arg-type]
        token_ids=ids,
        log_probs=tuple(-0.125 * (1 + value % 4) for value in ids),
    )


def call(name: str, arguments: Mapping[str, Any], *, text: str = "") -> ModelTurn:
    """A turn of a function-calling policy."""
    return ModelTurn(text, "stop", tool_calls=(ToolCall(name, arguments, "call-7"),))


@dataclass
class FakeBatch:
    """Rows answer by ``answer(conversation, turn)``; everything appended is kept."""

    conversations: Sequence[Conversation]
    answer: Answer
    turns: dict[int, list[ModelTurn]] = field(default_factory=dict)
    received: dict[int, list[Message]] = field(default_factory=dict)
    offered: dict[int, list[Sequence[Mapping[str, Any]]]] = field(default_factory=dict)
    freed: set[int] = field(default_factory=set)

    def generate(
        self, rows: Sequence[int], tools: Sequence[Sequence[Mapping[str, Any]]]
    ) -> list[ModelTurn]:
        answers = []
        for row, schemas in zip(rows, tools, strict=True):
            assert row not in self.freed
            played = self.turns.setdefault(row, [])
            self.offered.setdefault(row, []).append(schemas)
            turn = self.answer(self.conversations[row], len(played))
            played.append(turn)
            answers.append(turn)
        return answers

    def extend(self, messages: Mapping[int, Sequence[Message]]) -> None:
        for row, new in messages.items():
            self.received.setdefault(row, []).extend(new)
        self.freed |= set(self.turns) - set(messages)

    def tokens(self, row: int) -> TokenRecord | None:
        assert row not in self.freed
        ids: list[int] = [1, 2, 3]
        mask, log_probs = [0, 0, 0], [0.0, 0.0, 0.0]
        for turn in self.turns[row]:
            ids += [9, *turn.token_ids]
            mask += [0] + [1] * len(turn.token_ids)
            log_probs += [0.0, *turn.log_probs]
        return TokenRecord(tuple(ids), tuple(mask), tuple(log_probs))


@dataclass
class FakePolicy:
    """A policy whose turns are a function of the conversation and the turn number."""

    answer: Answer
    name: str = "fake-checkpoint"
    batches: list[FakeBatch] = field(default_factory=list)

    def identity(self) -> dict[str, Any]:
        return {"provider": "fake", "checkpoint_id": self.name, "sampling": {"temperature": 1.0}}

    def begin(self, conversations: Sequence[Conversation]) -> FakeBatch:
        batch = FakeBatch(conversations, self.answer)
        self.batches.append(batch)
        return batch


def script(*texts: str) -> Answer:
    """The same words in every episode, the last ones for ever."""
    return lambda conversation, turn: words(texts[min(turn, len(texts) - 1)])


def shopper(skill: float = 0.5) -> Answer:
    """Searches what was requested, opens one of the first results, chooses and buys.

    ``skill`` is how likely it is to choose the wanted options; its luck comes from the noise key.
    """

    def answer(conversation: Conversation, turn: int) -> ModelTurn:
        luck = random.Random(f"{conversation.noise_key}:{turn}")
        text = " ".join(message.content for message in conversation.messages)
        request = text.split(" request ")[-1].split()
        if turn == 0:
            return words("search " + " ".join(request[:2]))
        if turn == 1:
            return words(f"open #{luck.choice('12')}")
        wanted = [word for word in request[2:] if word not in ("size", "colour", "home")]
        if turn - 2 < len(wanted) and luck.random() < skill:
            return words(f"select {wanted[turn - 2]}")
        return words("buy")

    return answer


class FakeEngine:
    """Weights are one number; an update moves it by what the advantages and tokens add up to."""

    def __init__(self, *, threads: int = 1) -> None:
        self.weight = 0.3
        self.threads = threads
        self.policy = FakePolicy(self._answer)
        self.batches: list[Sequence[TrainingEpisode]] = []

    def _answer(self, conversation: Conversation, turn: int) -> ModelTurn:
        return shopper(self.weight)(conversation, turn)

    def facts(self) -> dict[str, Any]:
        return {"threads": self.threads}

    def update(self, episodes: Sequence[TrainingEpisode]) -> dict[str, float]:
        self.batches.append(episodes)
        push = sum(item.advantage * sum(item.tokens.loss_mask) for item in episodes)
        self.weight = min(0.95, self.weight + 0.01 + 0.001 * push)
        return {"train/loss": -push, "train/weight": self.weight}

    def save_state(self, path: Path, counters: Mapping[str, Any]) -> None:
        write_json(path, {"weight": self.weight, "counters": counters})

    def load_state(self, path: Path) -> dict[str, Any]:
        state = read_json(path)
        self.weight = state["weight"]
        counters: dict[str, Any] = state["counters"]
        return counters

    def save_checkpoint(self, folder: Path, record: Mapping[str, Any]) -> dict[str, Any]:
        weights = fingerprint(self.weight)
        document = {"checkpoint_id": f"fake-{weights[:8]}", "weights_sha256": weights, **record}
        write_json(folder / "checkpoint.json", document)
        return document
