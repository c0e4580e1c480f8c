"""Episodes chosen by rule and reduced to what anybody may see.

Of every condition the first success and the first failure in the order of tasks, and both sides of
the chosen cases. A turn shows the page's type, what stood on it in public (titles, prices, options)
and the action; prompts, personas, goals and purchases are never read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intraskill_web.episodes.shop_pages import price_format, priced
from trainer.analysis import Material
from trainer.rollout.traces import score

Json = Mapping[str, Any]
LISTED = 3  # products of a result page that are named
PARTS = ("r_type", "r_att", "r_option", "r_price")


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn in public words."""

    number: int
    page: str
    seen: str
    action: str
    problem: str
    tokens: int | None


@dataclass(frozen=True, slots=True)
class Sample:
    """One episode."""

    cohort: str
    task_id: int
    success: bool
    reward: float
    instruction: str
    chunks: Sequence[str]
    turns: Sequence[Turn]
    termination: str
    parts: Sequence[tuple[str, float]]
    source: str

    @property
    def reward_text(self) -> str:
        return f"{self.reward:.3f}"


def samples(folder: Path, material: Material) -> list[Sample]:
    """The chosen episodes of a run of ours; none where there are no traces."""
    found = material.analysis
    cases = {(side.cohort, case.task_id) for case in found.cases for side in (case.a, case.b)}
    named = {arm.name for test in found.tests for arm in test.arms if arm.condition}
    chosen: list[Sample] = []
    for population in material.episodes:
        if population.name not in named:
            continue
        wanted = {task for cohort, task in cases if cohort == population.name}
        rows = sorted(population.episodes, key=lambda row: (row.task_id, row.sample_id))
        for outcome in ("success", "failure"):
            first = next((row.task_id for row in rows if row.outcome == outcome), None)
            wanted |= set() if first is None else {first}
        path = folder / population.source
        chosen += [
            _sample(population.name, population.source, trace)
            for trace in _of_tasks(path, wanted)
            if score(trace.get("final")) is not None
        ]
    return sorted(chosen, key=lambda s: (s.cohort, s.task_id))


def _of_tasks(path: Path, tasks: set[int]) -> list[Json]:
    """The last trace of the first sample of each task; other lines are not even parsed."""
    marks = {task: f'"task_id":{task},'.encode() for task in tasks}
    found: dict[int, Json] = {}
    with path.open("rb") as handle:
        for line in handle:
            if line.endswith(b"\n") and any(mark in line for mark in marks.values()):
                trace = json.loads(line)
                if trace["job"]["task_id"] in tasks and trace["job"]["sample_id"] == 0:
                    found[trace["job"]["task_id"]] = trace
    return list(found.values())


def _sample(cohort: str, source: str, trace: Json) -> Sample:
    reward = score(trace["final"]) or {}
    return Sample(
        cohort=cohort,
        task_id=int(trace["job"]["task_id"]),
        success=bool(reward.get("r_success")),
        reward=float(reward.get("reward", 0.0)),
        instruction=str(trace["reset"]["task_instruction"]),
        chunks=[str(chunk["skill_id"]) for chunk in trace.get("selected_skills") or []],
        turns=list(_turns(trace)),
        termination=str(trace["final"].get("termination_reason") or ""),
        parts=[(name, reward[name]) for name in PARTS if name in reward],
        source=source,
    )


def _turns(trace: Json) -> Iterator[Turn]:
    state: Json = trace["reset"].get("observation_state") or {}
    prices = price_format(trace)
    for number, step in enumerate(trace["steps"], 1):
        problem = step.get("protocol_error") or step.get("policy_failure") or {}
        environment = step.get("environment") or {}
        if (environment.get("action_feedback") or {}).get("valid") is False:
            problem = {"code": "invalid"}
        yield Turn(
            number=number,
            page=str(state.get("page_type", "")),
            seen=_seen(state, prices),
            action=str(step.get("action") or ""),
            problem=str(problem.get("code", "")),
            tokens=((step.get("model") or {}).get("usage") or {}).get("completion_tokens"),
        )
        state = environment.get("observation_state") or state


def _seen(state: Json, prices: str) -> str:
    """What the page showed, in one line."""
    product = state.get("product")
    if isinstance(product, Mapping):
        options = state.get("selected_options") or {}
        chosen = ", ".join(f"{axis}={value}" for axis, value in options.items())
        price = priced(product.get("price"), prices)
        return " · ".join(filter(None, (str(product.get("title", "")), price, chosen)))
    products = state.get("products") or []
    named = "; ".join(str(p.get("title", "")) for p in products[:LISTED])
    rest = len(products) - LISTED
    return named + (f" … +{rest}" if rest > 0 else "")
