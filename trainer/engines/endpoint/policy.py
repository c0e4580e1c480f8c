"""A frozen checkpoint behind a chat server, for evaluations and gates.

Messages are exactly those of the shared conversation builder; past reasoning is not sent back. A
server that cannot be asked ends the one episode as a technical failure, which the evaluation plays
again later. A conversation that fills the model's context ends as it does in training: the last
answers are shorter, and where nothing fits any more the episode has reached its length. Only a
first prompt without room is a technical failure. Seeds follow from the episode, never from the
batch.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from trainer.engines.endpoint.client import ContextOverflow, EndpointClient, EndpointError
from trainer.engines.endpoint.replies import turn_of
from trainer.engines.endpoint.settings import EndpointSettings
from trainer.rollout.policy import Conversation, Message, ModelTurn, TokenRecord

Json = dict[str, Any]


class EndpointPolicy:
    """Asks one server for every turn of its episodes, which share nothing but the connections."""

    def __init__(
        self,
        settings: EndpointSettings,
        *,
        temperature: float,
        max_new_tokens: int,
        checkpoint: Mapping[str, Any],
    ) -> None:
        self.settings = settings
        self.temperature = temperature
        self.max_new_tokens = max_new_tokens
        self._checkpoint = dict(checkpoint)
        self.client = EndpointClient(settings)

    @property
    def at_once(self) -> int:
        """As many conversations as the server shall have in work."""
        return self.settings.concurrency

    def identity(self) -> Mapping[str, Any]:
        """The weights, as far as they are known, and everything that decides a sample."""
        return {
            **self._checkpoint,
            "sampling": {
                **self.settings.identity(),
                "temperature": self.temperature,
                "max_tokens": self.max_new_tokens,
            },
        }

    def begin(self, conversations: Sequence[Conversation]) -> EndpointBatch:
        """Start a batch of conversations."""
        return EndpointBatch(self, conversations)


class EndpointBatch:
    """The message lists of a batch; only episodes that go on are kept."""

    def __init__(self, policy: EndpointPolicy, conversations: Sequence[Conversation]) -> None:
        self._policy = policy
        self._keys = [conversation.noise_key for conversation in conversations]
        self._messages: list[list[Json]] = [
            [_message(message) for message in conversation.messages]
            for conversation in conversations
        ]
        self._turns = [0] * len(conversations)

    def generate(
        self, rows: Sequence[int], tools: Sequence[Sequence[Mapping[str, Any]]]
    ) -> list[ModelTurn]:
        """One turn for each row."""
        turns = [self._ask(row, offered) for row, offered in zip(rows, tools, strict=True)]
        for row, turn in zip(rows, turns, strict=True):
            self._turns[row] += 1
            echo = _echo(turn)
            if echo is not None:
                self._messages[row].append(echo)
        return turns

    def extend(self, messages: Mapping[int, Sequence[Message]]) -> None:
        """Append what followed the last turn; the other rows have ended."""
        for row in range(len(self._messages)):
            if row in messages:
                self._messages[row] += [_message(message) for message in messages[row]]
            else:
                self._messages[row] = []

    def tokens(self, row: int) -> TokenRecord | None:
        """None: a chat server does not say which tokens it drew."""
        return None

    def _ask(self, row: int, tools: Sequence[Mapping[str, Any]]) -> ModelTurn:
        policy, settings = self._policy, self._policy.settings
        body: Json = {
            "model": settings.model,
            "messages": self._messages[row],
            "temperature": policy.temperature,
            "max_tokens": policy.max_new_tokens,
            **settings.extra_body,
            "top_p": settings.top_p,
        }
        if settings.send_seed:
            body["seed"] = turn_seed(self._keys[row], self._turns[row])
        if tools:
            body |= {"tools": list(tools), "tool_choice": settings.tool_choice}
        started = time.monotonic()
        try:
            reply = _complete(policy.client, body)
        except EndpointError as error:
            if isinstance(error, ContextOverflow) and self._turns[row]:
                return ModelTurn(text="", finish_reason="length")
            return ModelTurn(text="", finish_reason="abort", decode_error=str(error))
        return turn_of(reply, latency_ms=(time.monotonic() - started) * 1000)


def _complete(client: EndpointClient, body: Json) -> object:
    """The reply, to a shorter answer where only that fits: some servers refuse what does not fit
    whole. Raises EndpointError."""
    try:
        return client.complete(body)
    except ContextOverflow as full:
        if full.room == 0:
            raise
        return client.complete({**body, "max_tokens": full.room})


def turn_seed(noise_key: str, turn: int) -> int:
    """The seed of a turn: equal wherever the same episode is played."""
    digest = hashlib.sha256(f"{noise_key}:{turn}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def _message(message: Message) -> Json:
    made: Json = {"role": message.role, "content": message.content}
    return made if message.tool_call_id is None else {**made, "tool_call_id": message.tool_call_id}


def _echo(turn: ModelTurn) -> Json | None:
    """A sampled turn as later requests repeat it; None when it said nothing."""
    calls = [
        {
            "id": call.call_id,
            "type": "function",
            "function": {
                "name": call.name,
                "arguments": json.dumps(dict(call.arguments), ensure_ascii=False, sort_keys=True),
            },
        }
        for call in turn.tool_calls
    ]
    text = turn.text.strip()
    if not calls and not text:
        return None
    message: Json = {"role": "assistant", "content": text or None}
    return {**message, "tool_calls": calls} if calls else message
