"""Single tasks chosen by a stated rule, so that nobody picks the nicest (gate-analysis.md §14.1).

Ties go to the smaller task id. A rule that no task satisfies gives no case.
"""

from __future__ import annotations

from collections.abc import Mapping

from trainer.analysis.behaviour import METRICS, Behaviour
from trainer.analysis.cohorts import Population
from trainer.analysis.schema_outcomes import Case, CaseSide

RULES = (
    "largest_step_reduction_both_success",
    "failure_to_success_largest_token_reduction",
    "success_to_failure_longest_final",
)
Pairs = Mapping[int, tuple[Behaviour, Behaviour]]


def cases(a: Population, b: Population) -> list[Case]:
    """One case a rule from two populations of one episode a task."""
    first = {row.task_id: row for row in a.episodes if row.sample_id == 0}
    second = {row.task_id: row for row in b.episodes if row.sample_id == 0}
    pairs = {task: (first[task], second[task]) for task in sorted(first.keys() & second.keys())}
    found = []
    for rule in RULES:
        task = _choose(rule, pairs)
        if task is not None:
            left, right = pairs[task]
            found.append(
                Case(
                    rule=rule,
                    task_id=task,
                    a=_side(a.name, left),
                    b=_side(b.name, right),
                    source=f"{a.source}; {b.source}",
                )
            )
    return found


def _choose(rule: str, pairs: Pairs) -> int | None:
    scores: dict[int, float] = {}
    for task, (a, b) in pairs.items():
        outcome = (a.outcome, b.outcome)
        if rule == RULES[0] and outcome == ("success", "success"):
            scores[task] = _number(a, "model_steps") - _number(b, "model_steps")
        elif rule == RULES[1] and outcome == ("failure", "success"):
            scores[task] = _number(a, "generated_tokens") - _number(b, "generated_tokens")
        elif rule == RULES[2] and outcome == ("success", "failure"):
            scores[task] = _number(b, "model_steps")
    return min(scores, key=lambda task: (-scores[task], task), default=None)


def _number(row: Behaviour, metric: str) -> float:
    return float(row.values[metric] or 0)


def _side(cohort: str, row: Behaviour) -> CaseSide:
    return CaseSide(
        cohort=cohort,
        success=None if row.outcome == "technical" else row.outcome == "success",
        reward=row.reward,
        turns=int(_number(row, "model_steps")),
        tokens=int(_number(row, "generated_tokens")),
        metrics={name: row.values[name] for name in METRICS},
        actions=list(row.labels),
    )
