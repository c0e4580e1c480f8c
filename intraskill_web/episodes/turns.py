"""The turns of a trace: what the policy did, what came back, what each cost. Pure.

Whatever a step holds, nothing here fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from intraskill_web.episodes.shop_pages import (
    ShopPage,
    mapping,
    number,
    price_format,
    sequence,
    shop_page,
)
from intraskill_web.episodes.shown import LONGEST, shown

Steps = Sequence[Mapping[str, Any]]


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
    opened: str = ""  # the title of the product whose id the argument is

    @property
    def summary(self) -> str:
        """What the outline says."""
        return f"{self.name} {self.opened or self.argument}".strip()[:200] or self.content[:60]


@dataclass(frozen=True, slots=True)
class OutlineTurn:
    """A turn in the outline."""

    index: int
    summary: str
    problem: bool
    valid: bool
    done: bool


def read_turns(trace: Mapping[str, Any], steps: Steps, begin: int, end: int) -> list[Turn]:
    """The turns ``begin`` (from 0) up to ``end``, each with the text that answered it."""
    final = mapping(trace.get("final"))
    means = turn_log_probs(mapping(trace.get("tokens")), [_completion(step) for step in steps])
    price = price_format(trace)
    turns = []
    for i in range(begin, end):
        following = steps[i + 1] if i + 1 < len(steps) else None
        after = following.get("observation") if following else final.get("observation")
        turns.append(_turn(i + 1, steps[i], after, means[i], price))
    return _linked(turns, steps, price)


def _page(state: object, price: str) -> ShopPage | None:
    return shop_page(state, price) if isinstance(state, Mapping) and state else None


def _turn(
    index: int, step: Mapping[str, Any], after: object, log_prob: float | None, price: str
) -> Turn:
    model = mapping(step.get("model"))
    environment = mapping(step.get("environment"))
    feedback = mapping(environment.get("action_feedback"))
    error = mapping(step.get("protocol_error") or model.get("protocol_error"))
    failure = mapping(step.get("policy_failure") or model.get("policy_failure"))
    name, argument = _call(model, step.get("action"))
    text = environment.get("observation")
    if error:
        text = step.get("protocol_feedback")
    observation = shown(text if text is not None else after, None)
    content, reasoning = shown(model.get("content"), None), shown(model.get("reasoning"), None)
    texts = (argument, content, reasoning, observation)
    return Turn(
        index=index,
        name=name,
        argument=argument[:LONGEST],
        content=content[:LONGEST],
        reasoning=reasoning[:LONGEST],
        finish_reason=shown(model.get("finish_reason"), 40),
        tokens=_completion(step),
        latency_ms=number(model.get("latency_ms")),
        problem=shown(error.get("code") or failure.get("code"), 200),
        problem_text=shown(error.get("message")),
        valid=feedback.get("valid") is not False,
        feedback=shown(feedback.get("message") or feedback.get("reason")),
        observation=observation[:LONGEST],
        page=_page(environment.get("observation_state"), price),
        reward=number(environment.get("reward")),
        done=environment.get("done") is True,
        log_prob=log_prob,
        opened=_opened(argument, environment.get("observation_state")),
        cut=sum(max(0, len(text) - LONGEST) for text in texts),
    )


def _opened(argument: str, state: object) -> str:
    """The title of the product that a click on its id has opened; nothing for other actions."""
    product = mapping(mapping(state).get("product"))
    return shown(product.get("title"), 200) if argument == product.get("asin") else ""


def outlined(index: int, step: Mapping[str, Any]) -> OutlineTurn:
    """A step as the outline shows it, without looking at its page."""
    model, environment = mapping(step.get("model")), mapping(step.get("environment"))
    name, argument = _call(model, step.get("action"))
    feedback = mapping(environment.get("action_feedback"))
    said = _opened(argument, environment.get("observation_state")) or argument[:120]
    return OutlineTurn(
        index=index,
        summary=f"{name} {said}".strip() or shown(model.get("content"), 60),
        problem=bool(
            step.get("protocol_error")
            or step.get("policy_failure")
            or model.get("protocol_error")
            or model.get("policy_failure")
        ),
        valid=feedback.get("valid") is not False,
        done=environment.get("done") is True,
    )


def _linked(turns: list[Turn], steps: Sequence[Mapping[str, Any]], price: str) -> list[Turn]:
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
            opened = turns[i + 1].argument if i + 1 < len(turns) else ""
            page = shop_page(state, price, opened)
        linked.append(replace(turn, page=page, same_as=same_as))
    return linked


def _call(model: Mapping[str, Any], action: object) -> tuple[str, str]:
    """Function name and argument of the first call; else of the action string; else nothing."""
    for call in map(mapping, sequence(model.get("tool_calls"))):
        arguments = call.get("arguments")
        if isinstance(arguments, Mapping):
            text = " ".join(shown(value, None) for value in arguments.values())
        else:
            text = shown(arguments, None)
        return shown(call.get("name"), 200), text
    if isinstance(action, str) and "[" in action:
        name, _sep, rest = action.partition("[")
        return shown(name, 200), shown(rest.removesuffix("]"), None)
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
