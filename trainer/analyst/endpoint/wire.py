"""Requests and replies of the chat protocol as plain values, whole or streamed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from trainer.model_text import read_object, whole_text

Message = dict[str, Any]
Request = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A function that the model wants to call; ``arguments`` is the text it wrote."""

    call_id: str
    name: str
    arguments: str

    def parsed(self) -> dict[str, Any] | None:
        """The arguments, or None when they are not a JSON object."""
        return read_object(self.arguments or "{}")


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the server counted them; ``cached`` and ``reasoning`` are parts of the others."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. ``usage`` is None when the server did not count."""

    content: str = ""
    reasoning: str = ""
    refusal: str = ""
    tool_calls: tuple[ToolRequest, ...] = ()
    finish_reason: str = ""
    model: str = ""
    usage: Usage | None = None

    def to_record(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Reply:
        usage = record["usage"]
        return cls(
            **{
                **record,
                "tool_calls": tuple(ToolRequest(**call) for call in record["tool_calls"]),
                "usage": None if usage is None else Usage(**usage),
            }
        )

    def message(self) -> Message:
        """The answer as the next request repeats it; arguments that are no JSON become ``{}``,
        because servers refuse to read them again. Reasoning is never sent back."""
        message: Message = {"role": "assistant", "content": self.content or self.refusal}
        if self.tool_calls:
            message["tool_calls"] = [
                {
                    "id": call.call_id,
                    "type": "function",
                    "function": {
                        "name": call.name,
                        "arguments": "{}" if call.parsed() is None else call.arguments,
                    },
                }
                for call in self.tool_calls
            ]
        return message


class BrokenReply(Exception):
    """The server answered with something that is no answer; asking again may help."""


def read_whole(response: Any) -> Reply:
    """A reply from one response object of the client library. Raises BrokenReply."""
    if not getattr(response, "choices", None):
        raise BrokenReply("the response holds no choice")
    choice = response.choices[0]
    message = choice.message
    calls = [
        _request(place, call.id, call.function.name, call.function.arguments)
        for place, call in enumerate(message.tool_calls or ())
    ]
    return Reply(
        content=whole_text(message.content or ""),
        reasoning=whole_text(getattr(message, "reasoning_content", None) or ""),
        refusal=whole_text(getattr(message, "refusal", None) or ""),
        tool_calls=tuple(calls),
        finish_reason=choice.finish_reason or "",
        model=response.model or "",
        usage=_usage(response.usage),
    )


@dataclass(slots=True)
class StreamReader:
    """Collects the pieces of a streamed reply."""

    content: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    calls: dict[int, dict[str, str]] = field(default_factory=dict)
    finish_reason: str = ""
    model: str = ""
    usage: Usage | None = None

    def add(self, chunk: Any) -> None:
        """Take in one chunk."""
        self.model = chunk.model or self.model
        self.usage = _usage(chunk.usage) or self.usage
        for choice in chunk.choices[:1]:
            self.finish_reason = choice.finish_reason or self.finish_reason
            delta = choice.delta
            self.content.append(delta.content or "")
            self.reasoning.append(getattr(delta, "reasoning_content", None) or "")
            self.refusal.append(getattr(delta, "refusal", None) or "")
            self._add_calls(delta.tool_calls or ())

    def _add_calls(self, pieces: Iterable[Any]) -> None:
        for piece in pieces:
            call = self.calls.setdefault(piece.index, {"id": "", "name": "", "arguments": ""})
            call["id"] = piece.id or call["id"]
            if piece.function is not None:
                call["name"] += piece.function.name or ""
                call["arguments"] += piece.function.arguments or ""

    def reply(self) -> Reply:
        """The whole reply. Raises BrokenReply when the stream broke off."""
        if not self.finish_reason:
            raise BrokenReply("the stream ended before the answer did")
        return Reply(
            content=whole_text("".join(self.content)),
            reasoning=whole_text("".join(self.reasoning)),
            refusal=whole_text("".join(self.refusal)),
            tool_calls=tuple(
                _request(place, call["id"], call["name"], call["arguments"])
                for place, call in sorted(self.calls.items())
            ),
            finish_reason=self.finish_reason,
            model=self.model,
            usage=self.usage,
        )


def _request(
    place: int, call_id: str | None, name: str | None, arguments: str | None
) -> ToolRequest:
    return ToolRequest(
        whole_text(call_id or f"call-{place}"), whole_text(name or ""), whole_text(arguments or "")
    )


def _usage(value: Any) -> Usage | None:
    if value is None:
        return None
    prompt, completion = value.prompt_tokens_details, value.completion_tokens_details
    return Usage(
        prompt=value.prompt_tokens or 0,
        completion=value.completion_tokens or 0,
        cached=(prompt.cached_tokens or 0) if prompt else 0,
        reasoning=(completion.reasoning_tokens or 0) if completion else 0,
    )
