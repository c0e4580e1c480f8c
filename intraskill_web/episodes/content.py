"""What was said in an episode, turn by turn: what search reads and where a hit is shown. Pure.

Left out on purpose: the system prompt and the texts of chunks, which thousands of episodes share
(the filter by chunk finds them), and the private goal, which not every reader may see.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from intraskill_web.episodes.shop_pages import mapping, sequence

MAX_TAG = 80


@dataclass(frozen=True, slots=True)
class Saying:
    """A text and who said it: task, persona, thinking, agent, call, shop or error."""

    turn: int  # 0: before the first turn
    role: str
    text: str


def sayings(trace: Mapping[str, Any]) -> Iterator[Saying]:
    """Every text of ``trace`` in order, none twice."""
    reset = mapping(trace.get("reset"))
    yield Saying(0, "id", _text(trace.get("episode_id")))
    yield Saying(0, "task", _text(reset.get("task_instruction")))
    persona = reset.get("user_persona")
    if persona:
        yield Saying(0, "persona", _flat(persona))
    steps = [step for step in sequence(trace.get("steps")) if isinstance(step, Mapping)]
    for index, step in enumerate(steps):
        yield from _turn(index + 1, step, _after(trace, steps, index))
    error = mapping(trace.get("error"))
    if error:
        yield Saying(len(steps), "error", f"{_text(error.get('type'))}: {error.get('message')}")


def _turn(number: int, step: Mapping[str, Any], after: object) -> Iterator[Saying]:
    model = mapping(step.get("model"))
    thought, content = _text(model.get("reasoning")), _text(model.get("content"))
    if thought:
        yield Saying(number, "thinking", thought)
    if content:
        yield Saying(number, "agent", content)
    for call in map(mapping, sequence(model.get("tool_calls"))):
        yield Saying(number, "call", f"{_text(call.get('name'))} {_flat(call.get('arguments'))}")
    if after:
        yield Saying(number, "shop", _text(after))


def _after(trace: Mapping[str, Any], steps: list[Mapping[str, Any]], index: int) -> object:
    """The text that answered a step: feedback, its page, or what the next step began with."""
    step = steps[index]
    if step.get("protocol_error") or mapping(step.get("model")).get("protocol_error"):
        feedback = step.get("protocol_feedback")
        if feedback is not None:
            return feedback
    page = mapping(step.get("environment")).get("observation")
    if page is not None:
        return page
    if index + 1 < len(steps):
        return steps[index + 1].get("observation")
    return mapping(trace.get("final")).get("observation")


def persona_tags(trace: Mapping[str, Any]) -> list[str]:
    """The short facts of the persona as ``key=value``."""
    tags = []
    for key, value in mapping(mapping(trace.get("reset")).get("user_persona")).items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str | int | float) and len(str(item)) <= MAX_TAG:
                tags.append(f"{key}={item}")
    return tags


def _flat(value: object) -> str:
    """The leaves of a JSON value, keys left out of plain arguments."""
    if isinstance(value, Mapping):
        return " ".join(_flat(item) for item in value.values())
    if isinstance(value, list):
        return " ".join(map(_flat, value))
    return _text(value)


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
