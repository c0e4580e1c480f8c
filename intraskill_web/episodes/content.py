"""What was said in an episode, turn by turn: what search reads and where a hit is shown. Pure.

Left out on purpose: the system prompt and the texts of chunks, which thousands of episodes share
(the filter by chunk finds them), and the private goal, which not every reader may see.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from intraskill_web.episodes.shop_pages import mapping, sequence

MAX_TAG = 80


class Saying(NamedTuple):
    """A text and who said it: task, persona, thinking, agent, call, shop or error."""

    turn: int  # 0: before the first turn
    role: str
    text: str


def sayings(trace: Mapping[str, Any]) -> Iterator[Saying]:
    """Every text of ``trace`` in order, none twice."""
    steps = [step for step in sequence(trace.get("steps")) if isinstance(step, Mapping)]
    yield from said_before(trace.get("episode_id"), trace.get("reset"))
    for place, step in enumerate(steps):
        rest = [*steps[place + 1 : place + 2], trace.get("final")]
        yield from said_in(place + 1, step, lambda rest=rest: rest[0])  # type: ignore[misc]
    yield from said_after(len(steps), trace.get("error"))


def said_before(episode_id: object, reset: object) -> Iterator[Saying]:
    """The texts before the first turn."""
    reset = mapping(reset)
    yield Saying(0, "id", _text(episode_id))
    yield Saying(0, "task", _text(reset.get("task_instruction")))
    persona = reset.get("user_persona")
    if persona:
        yield Saying(0, "persona", _flat(persona))


def said_in(
    turn: int, step: Mapping[str, Any], following: Callable[[], object]
) -> Iterator[Saying]:
    """The texts of a turn. ``following`` is asked for what came next: a step, or the end."""
    model = mapping(step.get("model"))
    thought, content = _text(model.get("reasoning")), _text(model.get("content"))
    if thought:
        yield Saying(turn, "thinking", thought)
    if content:
        yield Saying(turn, "agent", content)
    for call in map(mapping, sequence(model.get("tool_calls"))):
        yield Saying(turn, "call", f"{_text(call.get('name'))} {_flat(call.get('arguments'))}")
    if after := _after(step, following):
        yield Saying(turn, "shop", _text(after))


def said_after(turns: int, error: object) -> Iterator[Saying]:
    """The text of a technical failure."""
    raised = mapping(error)
    if raised:
        said = ": ".join(filter(None, map(_text, (raised.get("type"), raised.get("message")))))
        yield Saying(turns, "error", said)


def _after(step: Mapping[str, Any], following: Callable[[], object]) -> object:
    """The text that answered a step: feedback, its page, or what the next step began with."""
    if step.get("protocol_error") or mapping(step.get("model")).get("protocol_error"):
        feedback = step.get("protocol_feedback")
        if feedback is not None:
            return feedback
    page = mapping(step.get("environment")).get("observation")
    return mapping(following()).get("observation") if page is None else page


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
