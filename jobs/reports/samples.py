"""Episodes chosen by rule and reduced to what anybody may see.

Of every condition the first success and the first failure in the order of tasks, and both sides of
the chosen cases. A turn shows the page's type, what stood on it in public (titles, prices, options)
and the action; prompts, personas, goals and purchases are never read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.analysis import Analysis
from trainer.analysis.own_traces import latest
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


def samples(folder: Path, found: Analysis) -> list[Sample]:
    """The chosen episodes of a run of ours; none where there are no traces."""
    wanted = {(side.cohort, case.task_id) for case in found.cases for side in (case.a, case.b)}
    chosen: list[Sample] = []
    for cohort in (c for c in found.cohorts if c.outcome == "all" and c.split != "train"):
        path = folder / cohort.source
        if not path.is_file():
            continue
        first: dict[bool, Json] = {}
        cases: list[Json] = []
        for trace in sorted(latest(path), key=lambda t: t["job"]["task_id"]):
            reward = score(trace.get("final"))
            if reward is None:
                continue
            success = bool(reward["r_success"])
            if (cohort.name, trace["job"]["task_id"]) in wanted:
                cases.append(trace)
            elif success not in first:
                first[success] = trace
        chosen += [_sample(cohort.name, cohort.source, t) for t in (*first.values(), *cases)]
    return sorted(chosen, key=lambda s: (s.cohort, s.task_id))


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
    for number, step in enumerate(trace["steps"], 1):
        problem = step.get("protocol_error") or step.get("policy_failure") or {}
        environment = step.get("environment") or {}
        if (environment.get("action_feedback") or {}).get("valid") is False:
            problem = {"code": "invalid"}
        yield Turn(
            number=number,
            page=str(state.get("page_type", "")),
            seen=_seen(state),
            action=str(step.get("action") or ""),
            problem=str(problem.get("code", "")),
            tokens=((step.get("model") or {}).get("usage") or {}).get("completion_tokens"),
        )
        state = environment.get("observation_state") or state


def _seen(state: Json) -> str:
    """What the page showed, in one line."""
    product = state.get("product")
    if isinstance(product, Mapping):
        options = state.get("selected_options") or {}
        chosen = ", ".join(f"{axis}={value}" for axis, value in options.items())
        price = f" · {product.get('price', '')}"
        return f"{product.get('title', '')}{price}" + (f" · {chosen}" if chosen else "")
    products = state.get("products") or []
    named = "; ".join(str(p.get("title", "")) for p in products[:LISTED])
    rest = len(products) - LISTED
    return named + (f" … +{rest}" if rest > 0 else "")
