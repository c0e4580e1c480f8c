"""What the episode loop asks of a policy, whichever engine stands behind it.

An engine receives whole conversations once (``begin``) and then only what is new, so that a token
engine can keep its cache and an HTTP engine can keep its message list. Randomness belongs to the
episode, never to the batch: two episodes with the same ``noise_key`` see the same random numbers at
the same (turn, token) whatever else is in the batch. That makes runs resumable, and paired arms
that share keys use common random numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

Role = Literal["system", "user", "assistant", "tool"]
FinishReason = Literal["stop", "length", "abort"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Role
    content: str
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One decoded function call."""

    name: str
    arguments: Mapping[str, Any]
    call_id: str = "call-0"


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """One sampled answer.

    ``token_ids`` and ``log_probs`` are exactly what was sampled, never re-tokenised; empty for
    engines that do not return them. ``tool_calls`` holds what the engine decoded from ``text``.
    """

    text: str
    finish_reason: FinishReason
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    token_ids: tuple[int, ...] = ()
    log_probs: tuple[float, ...] = ()
    latency_ms: float = 0.0
    usage: Mapping[str, int] = field(default_factory=dict)
    decode_error: str | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """How an episode begins: its prompt and the key of its random numbers."""

    messages: tuple[Message, ...]
    noise_key: str


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """The exact tokens of a finished episode: ``loss_mask`` is 1 on sampled tokens only."""

    token_ids: tuple[int, ...]
    loss_mask: tuple[int, ...]
    log_probs: tuple[float, ...]


class PolicyBatch(Protocol):
    """A batch of conversations in progress. Rows are numbered as they were given to ``begin``."""

    def generate(
        self, rows: Sequence[int], tools: Sequence[Sequence[Mapping[str, Any]]]
    ) -> list[ModelTurn]:
        """One turn for each of ``rows``; ``tools`` are the schemas offered to each."""
        ...

    def extend(self, messages: Mapping[int, Sequence[Message]]) -> None:
        """Append what followed the last turn. A row that is not named has ended and is freed."""
        ...

    def tokens(self, row: int) -> TokenRecord | None:
        """The exact tokens of ``row`` so far, or None when the engine has none."""
        ...


class Policy(Protocol):
    """A frozen checkpoint behind some engine."""

    def identity(self) -> Mapping[str, Any]:
        """What identifies the policy in plans and traces: checkpoint id, hash and sampling."""
        ...

    def begin(self, conversations: Sequence[Conversation]) -> PolicyBatch:
        """Start a batch; equal prompts are computed once."""
        ...


@runtime_checkable
class ServedPolicy(Protocol):
    """A policy whose conversations have nothing in common: each is played at its own pace."""

    @property
    def at_once(self) -> int:
        """How many conversations may be in work at a time, each begun as a batch of its own."""
        ...
