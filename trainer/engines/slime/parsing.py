"""From decoded model text to a turn: reasoning, visible text, calls. The parsers are SGLang's.

The engine that serves a gate parses with the same parsers, so training and evaluation read a model
alike. They are imported when first needed. A parser that fails on what a model wrote is a protocol
error of the policy, never a technical failure. Specification: training.md §4.5.6-7, §8.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.model_text import read_object, whole_text
from trainer.rollout.policy import ToolCall


@dataclass(frozen=True, slots=True)
class ParsedOutput:
    """What a model said. ``error`` is set when a call was begun that cannot be read."""

    reasoning: str
    text: str
    calls: tuple[ToolCall, ...]
    error: str | None = None


def parse_output(
    raw: str,
    tools: Sequence[Mapping[str, Any]],
    *,
    tool_parser: str,
    reasoning_parser: str,
) -> ParsedOutput:
    """Read one decoded turn. ``tools`` are the schemas the model was told of."""
    reasoning, body = split_reasoning(raw, reasoning_parser)
    text, found, error = find_calls(body, tools, tool_parser)
    calls = tuple(
        ToolCall(whole_text(name), read_arguments(parameters), f"call-{index}")
        for index, (name, parameters) in enumerate(found)
    )
    return ParsedOutput(whole_text(reasoning.strip()), whole_text(text.strip()), calls, error)


def split_reasoning(raw: str, parser: str) -> tuple[str, str]:
    """Reasoning and the rest; an opening mark that the prompt already held may be missing."""
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    reasoning, body = ReasoningParser(model_type=parser, stream_reasoning=False).parse_non_stream(
        raw
    )
    reasoning, body = reasoning or "", body or ""
    if not reasoning and "</think>" in body:
        reasoning, _, body = body.partition("</think>")
    return reasoning, body


def find_calls(
    body: str, tools: Sequence[Mapping[str, Any]], parser: str
) -> tuple[str, list[tuple[str, str]], str | None]:
    """Visible text, (name, JSON parameters) of each call, and what could not be read."""
    if not tools:
        return body, [], None
    from sglang.srt.entrypoints.openai.protocol import Function, Tool
    from sglang.srt.function_call.function_call_parser import FunctionCallParser

    known = [Tool(type="function", function=Function(**tool["function"])) for tool in tools]
    reader = FunctionCallParser(tools=known, tool_call_parser=parser)
    if not reader.has_tool_call(body):
        return body, [], None
    try:
        text, calls = reader.parse_non_stream(body)
    except Exception as error:  # whatever a model wrote must not end the episode unscored
        return "", [], f"{type(error).__name__}: {error}"
    return text or "", [(call.name or "", call.parameters or "{}") for call in calls], None


def read_arguments(parameters: str) -> dict[str, Any]:
    """The arguments of a call. What is no JSON object is kept under a key that no tool knows."""
    value = read_object(parameters)
    return {"_raw_arguments": whole_text(parameters)} if value is None else value
