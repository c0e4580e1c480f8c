"""A policy of a few rules that reads its prompt: some chunks change what it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.canonical import fingerprint
from trainer.rollout.policy import Conversation, Message, ModelTurn, TokenRecord

HELPS = "select the wanted options before buy"
HARMS = "hurry and buy the last result"
IDLE = "thank the seller politely"


class Episode:
    def __init__(self, conversation: Conversation) -> None:
        system, request, _page = (message.content for message in conversation.messages)
        skill, _, persona = system.partition(" persona ")
        words = persona.split()
        wishes = dict(zip(words[::2], words[1::2], strict=False))
        goal = request.removeprefix("request ").split()
        luck = int(fingerprint(conversation.noise_key)[:4], 16) / 0xFFFF
        query = [*goal[:2], wishes.get("brand", "")]
        self.plan = [" ".join(["search", *query]).strip()]
        self.plan.append("open #3" if HARMS in skill and luck < 0.9 else "open #1")
        if HELPS in skill or luck < 0.4:
            wanted = [wishes.get("colour", ""), wishes.get("size", ""), *goal]
            options = {"white", "black", "red", "blue", "green", "pink", "yellow", "grey"}
            options |= {"xs", "s", "m", "l", "xl"}
            self.plan += [f"select {word}" for word in dict.fromkeys(wanted) if word in options]
        self.plan.append("buy")

    def next(self) -> str:
        return self.plan.pop(0) if self.plan else "buy"


class Batch:
    def __init__(self, conversations: Sequence[Conversation], fails: str | None) -> None:
        self.episodes = [Episode(conversation) for conversation in conversations]
        self.failing = [conversation.noise_key == fails for conversation in conversations]

    def generate(self, rows: Sequence[int], tools: Sequence[object]) -> list[ModelTurn]:
        return [
            ModelTurn("", "abort")
            if self.failing[row]
            else ModelTurn(self.episodes[row].next(), "stop")
            for row in rows
        ]

    def extend(self, messages: Mapping[int, Sequence[Message]]) -> None:
        pass

    def tokens(self, row: int) -> TokenRecord | None:
        return None


class ScriptedPolicy:
    """``stop_after`` batches raises KeyboardInterrupt, as a kill between two batches would.

    The episode with the noise key ``fails`` never gets an answer.
    """

    def __init__(
        self,
        checkpoint: str = "scripted",
        stop_after: int | None = None,
        fails: str | None = None,
    ) -> None:
        self.checkpoint = checkpoint
        self.stop_after = stop_after
        self.fails = fails
        self.batches = 0

    def identity(self) -> Mapping[str, Any]:
        return {"provider": "scripted", "checkpoint_id": self.checkpoint, "sampling": {}}

    def begin(self, conversations: Sequence[Conversation]) -> Batch:
        if self.batches == self.stop_after:
            raise KeyboardInterrupt
        self.batches += 1
        return Batch(conversations, self.fails)
