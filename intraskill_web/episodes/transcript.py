"""A trace as people read it: the prompt, then turns of call and observation. Pure.

Reads the published layout and our slim one. Whatever a field holds, nothing here fails: a trace is
what a model wrote, and a broken one must still be shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from intraskill_web.episodes.shop_pages import (
    ShopPage,
    mapping,
    number,
    sequence,
    shop_page,
)

LONGEST = 20_000  # characters of one text that a page shows; the rest has an address of its own
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
SIGNS = {code: 0x2400 + code for code in range(0x20) if code not in (9, 10, 13)} | {0x7F: 0x2421}


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: what the policy did and what came back.

    ``observation`` is the text after the action; ``page`` its structured state for the rendered
    shop page. ``problem`` is the code of a protocol error or policy failure. ``same_as`` is the
    earlier turn after which the shop had shown this very result page.
    """

    index: int
    name: str
    argument: str
    content: str
    reasoning: str
    finish_reason: str
    tokens: int | None
    latency_ms: float | None
    problem: str
    problem_text: str
    valid: bool
    feedback: str
    observation: str
    page: ShopPage | None
    reward: float | None
    done: bool
    log_prob: float | None = None
    same_as: int | None = None
    cut: int = 0  # characters of its texts beyond what is shown

    @property
    def summary(self) -> str:
        """What the outline says."""
        return f"{self.name} {self.argument}".strip()[:200] or self.content[:60]


@dataclass(frozen=True, slots=True)
class OutlineTurn:
    """A turn in the outline."""

    index: int
    summary: str
    problem: bool
    valid: bool
    done: bool


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
    means = turn_log_probs(tokens, [_completion(step) for step in steps])
    turns = []
    begin = max(0, first - 1)
    end = len(steps) if count is None else min(len(steps), begin + count)
    for i in range(begin, end):
        following = steps[i + 1] if i + 1 < len(steps) else None
        after = following.get("observation") if following else final.get("observation")
        turns.append(_turn(i + 1, steps[i], after, means[i]))
    turns = _linked(turns, steps)
    messages = [mapping(m) for m in sequence(trace.get("conversation"))]
    if trace.get("layout") is None:  # the published layout keeps the whole conversation there
        messages = messages[:2]
    return Transcript(
        prompt=[(_text(m.get("role")), _text(m.get("content"))) for m in messages],
        turns=turns,
        outline=[_outlined(i + 1, step) for i, step in enumerate(steps)],
        chunks=[_chunk(mapping(c)) for c in sequence(trace.get("selected_skills"))],
        persona=_pairs(mapping(trace.get("reset")).get("user_persona")),
        goal=_pairs(final.get("goal")),
        purchase=_pairs(final.get("purchase")),
        tokens=_tokens(tokens) if tokens else None,
        failure=_failure(mapping(trace.get("error"))),
    )


def _chunk(record: Mapping[str, Any]) -> ShownChunk:
    skill_id = _text(record.get("skill_id"))
    content = _text(record.get("content"))
    heading = content.lstrip().split("\n", 1)[0].lstrip("# ")[:200]
    title = _text(mapping(record.get("metadata")).get("title")) or heading
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
    return Failure(*(_text(record.get(key)) for key in keys))


def _page(state: object) -> ShopPage | None:
    return shop_page(state) if isinstance(state, Mapping) and state else None


def _pairs(value: object) -> Pairs:
    return [(str(key), _text(item)) for key, item in mapping(value).items()]


def _turn(index: int, step: Mapping[str, Any], after: object, log_prob: float | None) -> Turn:
    model = mapping(step.get("model"))
    environment = mapping(step.get("environment"))
    feedback = mapping(environment.get("action_feedback"))
    error = mapping(step.get("protocol_error") or model.get("protocol_error"))
    failure = mapping(step.get("policy_failure") or model.get("policy_failure"))
    name, argument = _call(model, step.get("action"))
    text = environment.get("observation")
    if error:
        text = step.get("protocol_feedback")
    observation = _text(text if text is not None else after)
    content, reasoning = _text(model.get("content")), _text(model.get("reasoning"))
    texts = (argument, content, reasoning, observation)
    return Turn(
        index=index,
        name=name,
        argument=argument[:LONGEST],
        content=content[:LONGEST],
        reasoning=reasoning[:LONGEST],
        finish_reason=str(model.get("finish_reason") or ""),
        tokens=_completion(step),
        latency_ms=number(model.get("latency_ms")),
        problem=str(error.get("code") or failure.get("code") or ""),
        problem_text=_text(error.get("message")),
        valid=feedback.get("valid") is not False,
        feedback=_text(feedback.get("message") or feedback.get("reason")),
        observation=observation[:LONGEST],
        page=_page(environment.get("observation_state")),
        reward=number(environment.get("reward")),
        done=environment.get("done") is True,
        log_prob=log_prob,
        cut=sum(max(0, len(text) - LONGEST) for text in texts),
    )


def _outlined(index: int, step: Mapping[str, Any]) -> OutlineTurn:
    model, environment = mapping(step.get("model")), mapping(step.get("environment"))
    name, argument = _call(model, step.get("action"))
    feedback = mapping(environment.get("action_feedback"))
    return OutlineTurn(
        index=index,
        summary=f"{name} {argument[:120]}".strip() or _text(model.get("content"))[:60],
        problem=bool(
            step.get("protocol_error")
            or step.get("policy_failure")
            or model.get("protocol_error")
            or model.get("policy_failure")
        ),
        valid=feedback.get("valid") is not False,
        done=environment.get("done") is True,
    )


def _linked(turns: list[Turn], steps: Sequence[Mapping[str, Any]]) -> list[Turn]:
    """Mark result pages that were shown before, and on each the product that is opened next."""
    seen: list[tuple[ShopPage, int]] = []
    linked = []
    for i, turn in enumerate(turns):
        page, same_as = turn.page, None
        if page is not None and page.kind == "search_results" and page.hits:
            same_as = next((index for known, index in seen if known == page), None)
            seen.append((page, turn.index))
            step = steps[turn.index - 1]
            state = mapping(mapping(step.get("environment")).get("observation_state"))
            page = shop_page(state, opened=turns[i + 1].argument if i + 1 < len(turns) else "")
        linked.append(replace(turn, page=page, same_as=same_as))
    return linked


def _call(model: Mapping[str, Any], action: object) -> tuple[str, str]:
    """Function name and argument of the first call; else of the action string; else nothing."""
    for call in map(mapping, sequence(model.get("tool_calls"))):
        arguments = call.get("arguments")
        if isinstance(arguments, Mapping):
            text = " ".join(
                _text(v) if not isinstance(v, Mapping | list) else json.dumps(v, ensure_ascii=False)
                for v in arguments.values()
            )
        else:
            text = _text(arguments)
        return str(call.get("name") or ""), text
    if isinstance(action, str) and "[" in action:
        name, _sep, rest = action.partition("[")
        return name, rest.removesuffix("]")
    return "", ""


def turn_log_probs(tokens: Mapping[str, Any], counts: Sequence[int | None]) -> list[float | None]:
    """The mean log-probability of each turn's sampled tokens, where the trace holds all of them."""
    values = [v for v in sequence(tokens.get("log_probs")) if isinstance(v, int | float)]
    if not values or sum(c or 0 for c in counts) != len(values):
        return [None] * len(counts)
    means: list[float | None] = []
    start = 0
    for count in counts:
        part = values[start : start + (count or 0)]
        start += count or 0
        means.append(sum(part) / len(part) if part else None)
    return means


def _completion(step: Mapping[str, Any]) -> int | None:
    usage = mapping(mapping(step.get("model")).get("usage"))
    value = usage.get("completion_tokens")
    return value if isinstance(value, int) else None


def _text(value: object) -> str:
    """A value as text, with control characters as the signs for them."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.translate(SIGNS) if CONTROL.search(text) else text
