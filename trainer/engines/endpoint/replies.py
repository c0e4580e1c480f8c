"""A chat completion as one sampled turn.

What a server answered with status 200 is never asked for again: a reply that cannot be read is an
error of the policy and is fed back like any other. The checks and their order are those of
environment.md §6.2; which rule a readable call breaks is the conversation builder's to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.files import parse_json
from trainer.model_text import read_object, whole_text
from trainer.rollout.policy import FinishReason, ModelTurn, ToolCall

USAGE = ("prompt_tokens", "completion_tokens", "total_tokens")


def turn_of(reply: object, *, latency_ms: float) -> ModelTurn:
    """The turn in a parsed reply; never raises, whatever the server wrote."""
    problem, choice = _choice(reply)
    if problem is not None:
        return ModelTurn(text="", finish_reason="stop", latency_ms=latency_ms, decode_error=problem)
    message = choice["message"]
    problem, calls = _calls(message.get("tool_calls"))
    finish: FinishReason = "length" if choice.get("finish_reason") == "length" else "stop"
    return ModelTurn(
        text=_text(message.get("content")),
        finish_reason=finish,
        tool_calls=calls,
        reasoning=_text(message.get("reasoning_content")),
        latency_ms=latency_ms,
        usage=_usage(reply),
        decode_error=problem,
    )


def _choice(reply: object) -> tuple[str | None, Mapping[str, Any]]:
    if not isinstance(reply, Mapping):
        return "invalid_response_body", {}
    choices = reply.get("choices")
    if not isinstance(choices, Sequence) or not choices:
        return "missing_choices", {}
    choice = choices[0]
    if not isinstance(choice, Mapping):
        return "invalid_choice", {}
    message = choice.get("message")
    if not isinstance(message, Mapping):
        return "invalid_message", {}
    if not isinstance(message.get("tool_calls") or [], Sequence):
        return "invalid_tool_calls", {}
    return None, choice


def _calls(found: object) -> tuple[str | None, tuple[ToolCall, ...]]:
    """The calls that can be read, and the first problem with one that cannot."""
    problem: str | None = None
    calls: list[ToolCall] = []
    items = found if isinstance(found, list) else []
    for item in items:
        wrong, call = _call(item)
        problem = problem or wrong
        if call is not None:
            calls.append(call)
    return problem, tuple(calls)


def _call(item: object) -> tuple[str | None, ToolCall | None]:
    """The call, and what is wrong with it; a call without id or name cannot even be echoed."""
    if not isinstance(item, Mapping) or item.get("type", "function") != "function":
        return "invalid_tool_call", None
    function = item.get("function")
    if not isinstance(function, Mapping):
        return "missing_function", None
    call_id, name = item.get("id"), function.get("name")
    for value, missing in ((call_id, "missing_tool_call_id"), (name, "missing_tool_name")):
        if not isinstance(value, str) or not value:
            return missing, None
    problem, arguments = _arguments(function.get("arguments"))
    return problem, ToolCall(whole_text(str(name)), arguments, whole_text(str(call_id)))


def _arguments(text: object) -> tuple[str | None, Mapping[str, Any]]:
    if not isinstance(text, str):
        return "invalid_arguments_type", {}
    value = read_object(text)
    if value is not None:
        return None, value
    return ("invalid_arguments_object" if _is_json(text) else "invalid_arguments_json"), {}


def _is_json(text: str) -> bool:
    try:
        parse_json(text)
    except (ValueError, RecursionError):
        return False
    return True


def _text(value: object) -> str:
    return whole_text(value) if isinstance(value, str) else ""


def _usage(reply: object) -> dict[str, int]:
    usage = reply.get("usage") if isinstance(reply, Mapping) else None
    if not isinstance(usage, Mapping):
        return {}
    counts = {key: usage[key] for key in USAGE if isinstance(usage.get(key), int)}
    details = usage.get("completion_tokens_details")
    if isinstance(details, Mapping) and isinstance(details.get("reasoning_tokens"), int):
        counts["reasoning_tokens"] = details["reasoning_tokens"]
    return counts
