"""A trace as people read it: the prompt, then turns of call and observation. Pure.

Reads the published layout and our slim one. Whatever a field holds, nothing here fails: a trace is
what a model wrote, and a broken one must still be shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from intraskill_web.episodes.shop_pages import mapping, number, sequence
from intraskill_web.episodes.shown import shown
from intraskill_web.episodes.turns import OutlineTurn, Turn, outlined, read_turns


@dataclass(frozen=True, slots=True)
class ShownChunk:
    """A chunk as the prompt showed it."""

    skill_id: str
    title: str
    content: str


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token counts and log-probabilities of the whole episode; None where the trace is silent."""

    sampled: int | None
    total: int | None
    log_prob_mean: float | None
    log_prob_min: float | None


@dataclass(frozen=True, slots=True)
class Failure:
    """A technical failure: where it happened and what was raised."""

    stage: str
    kind: str
    category: str
    message: str
    traceback: str


Pairs = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Transcript:
    """An episode; ``turns`` are those of the window, ``outline`` is all of them.

    ``goal`` is private to those who judge.
    """

    prompt: Pairs
    turns: list[Turn]
    outline: list[OutlineTurn]
    chunks: list[ShownChunk]
    persona: Pairs
    goal: Pairs
    purchase: Pairs
    tokens: Tokens | None
    failure: Failure | None


def transcript(trace: Mapping[str, Any], first: int = 1, count: int | None = None) -> Transcript:
    """The transcript of ``trace``, in full for ``count`` turns from ``first``."""
    steps = [step for step in sequence(trace.get("steps")) if isinstance(step, Mapping)]
    final = mapping(trace.get("final"))
    tokens = mapping(trace.get("tokens"))
    begin = max(0, first - 1)
    end = len(steps) if count is None else min(len(steps), begin + count)
    messages = [mapping(m) for m in sequence(trace.get("conversation"))]
    if trace.get("layout") is None:  # the published layout keeps the whole conversation there
        messages = messages[:2]
    return Transcript(
        prompt=[(shown(m.get("role")), shown(m.get("content"))) for m in messages],
        turns=read_turns(trace, steps, begin, end),
        outline=[outlined(i + 1, step) for i, step in enumerate(steps)],
        chunks=[_chunk(mapping(c)) for c in sequence(trace.get("selected_skills"))],
        persona=_pairs(mapping(trace.get("reset")).get("user_persona")),
        goal=_pairs(final.get("goal")),
        purchase=_pairs(final.get("purchase")),
        tokens=_tokens(tokens) if tokens else None,
        failure=_failure(mapping(trace.get("error"))),
    )


def _chunk(record: Mapping[str, Any]) -> ShownChunk:
    skill_id = shown(record.get("skill_id"))
    content = shown(record.get("content"))
    heading = content.lstrip().split("\n", 1)[0].lstrip("# ")[:200]
    title = shown(mapping(record.get("metadata")).get("title")) or heading
    return ShownChunk(skill_id, title or skill_id, content)


def _tokens(record: Mapping[str, Any]) -> Tokens:
    sampled, total = number(record.get("sampled")), number(record.get("total"))
    return Tokens(
        sampled=None if sampled is None else int(sampled),
        total=None if total is None else int(total),
        log_prob_mean=number(record.get("log_prob_mean")),
        log_prob_min=number(record.get("log_prob_min")),
    )


def _failure(record: Mapping[str, Any]) -> Failure | None:
    if not record:
        return None
    keys = ("stage", "type", "category", "message", "traceback")
    return Failure(*(shown(record.get(key)) for key in keys))


def _pairs(value: object) -> Pairs:
    return [(shown(key), shown(item)) for key, item in mapping(value).items()]
