"""Arms and their paired differences, by the published convention with tests beside it.

Computation: ``trainer.compare``. This module names the four conditions of a test and reads what a
comparison file has on record where the task values themselves were not published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.analysis.parallel import in_order
from trainer.analysis.schema_outcomes import Arm, Contrast, Test
from trainer.analysis.schema_values import Difference, Figure
from trainer.compare.outcomes import Arm as Values
from trainer.compare.report import PRIMARY, compare

Json = Mapping[str, Any]
COMPUTED = "paired percentile bootstrap, 10,000 resamples, seed by metric name"
RECORDED = "as recorded in the comparison file"
# how comparison files call the means of the two sides
SIDE_A, SIDE_B = ("bare_mean", "minus_mean", "a"), ("equipped_mean", "plus_mean", "b")
# name → conditions a and b; the difference is b minus a
CONTRASTS = {
    "training_free": ("base_free", "final_free"),
    "initial_skill": ("base_free", "base_s0"),
    "final_skill": ("final_free", "final_st"),
    "final_pair_vs_base": ("base_free", "final_st"),
    "training_with_skill": ("base_s0", "final_st"),
}
# compared in every metric; the others, which add nothing to them, in the declared ones
WHOLE = ("training_free", "initial_skill", "final_skill")
BEHAVIOUR = (
    "steps_mean", "model_steps", "protocol_errors", "protocol_error_rate", "policy_failures",
    "policy_failure_rate", "invalid_actions", "invalid_action_rate", "total_actions",
)  # fmt: skip
DENOMINATORS = {
    "protocol_error_rate": ("model_steps", "model steps"),
    "policy_failure_rate": ("model_steps", "model steps"),
    "invalid_action_rate": ("total_actions", "executed actions"),
}


def summary_figures(summary: Json, source: str) -> dict[str, Figure]:
    """The figures of an evaluation's ``summary.json`` with their denominators."""
    counts, primary = summary["counts"], summary["primary"]
    scored, completed = counts["scored"], counts["completed"]

    def figure(value: Any, n: int | None, of: str) -> Figure:
        return Figure(value=value, n=n, of=of, source=source)

    found = {
        "reward": figure(primary["reward_mean"], scored, "scored episodes"),
        "reward_sem": figure(primary["reward_sem"], scored, "scored episodes"),
        "success": figure(primary["success_rate"], scored, "scored episodes"),
        "coverage": figure(counts["coverage"], counts["requested"], "planned episodes"),
    }
    for name, value in (summary.get("reward_components") or {}).items():
        found[name] = figure(value, scored, "scored episodes")
    behaviour = summary.get("behavior") or {}
    for name in BEHAVIOUR:
        of = DENOMINATORS.get(name)
        n, words = (behaviour.get(of[0]), of[1]) if of else (completed, "completed episodes")
        found[name] = figure(behaviour.get(name), n, words)
    cost = summary.get("cost") or {}
    for name, value in (cost.get("tokens") or {}).items():
        found[name] = figure(value, completed, "completed episodes")
    tokens, steps = found.get("completion_tokens"), behaviour.get("model_steps")
    if tokens is not None and tokens.value and steps:
        found["tokens_per_step"] = figure(tokens.value / steps, steps, "model steps")
    found["duration_ms"] = figure(cost.get("duration_ms_mean"), completed, "completed episodes")
    return found


def contrast(name: str, split: str, a: Values, b: Values, source: str) -> Contrast:
    """b minus a. Raises InputError when the arms hold different tasks."""
    found = compare(a, b)
    tests = found["tests"]
    differences = [
        Difference(
            metric=metric,
            n=found["pairs"],
            of="tasks",
            a=row["a_mean"],
            b=row["b_mean"],
            difference=row["difference"],
            interval=tuple(row["interval"]),
            bca_interval=tuple(row["bca_interval"]),
            sd=row["sd"],
            detectable=row["detectable_difference"],
            p=tests["p_values"].get(metric),
            p_holm=tests["holm"].get(metric),
            source=source,
        )
        for metric, row in found["metrics"].items()
    ]
    mcnemar = tests["mcnemar"] or {}
    return Contrast(
        name=name,
        split=split,
        a=a.name,
        b=b.name,
        n=found["pairs"],
        convention=COMPUTED,
        differences=differences,
        transitions=found["transitions"],
        mcnemar_exact=mcnemar.get("exact"),
        mcnemar_mid_p=mcnemar.get("mid_p"),
        newcombe=tests["newcombe_interval"],
        source=source,
    )


def _asked(question: tuple[str, str, Values, Values, str]) -> Contrast:
    return contrast(*question)


def test_of(split: str, arms: Sequence[Arm], values: Mapping[str, Values], source: str) -> Test:
    """Every named contrast whose two conditions were played; ``values`` by condition."""
    asked = []
    for name, (a, b) in CONTRASTS.items():
        if a in values and b in values:
            first, second = on_shared_tasks(values[a], values[b])
            if name not in WHOLE:
                first, second = _primary(first), _primary(second)
            if len(first.task_ids) > 1:
                asked.append((name, split, first, second, source))
    found = in_order(_asked, asked)
    gaps = {
        each.name: next((d for d in each.differences if d.metric == "r_success"), None)
        for each in found
    }
    return Test(
        split=split,
        arms=list(arms),
        contrasts=found,
        initial_gap=gaps.get("initial_skill"),
        internalisation_gap=gaps.get("final_skill"),
    )


def on_shared_tasks(a: Values, b: Values) -> tuple[Values, Values]:
    """Both arms on the tasks that both hold: evaluations may differ in size."""
    shared = sorted(set(a.task_ids) & set(b.task_ids))
    return _restricted(a, shared), _restricted(b, shared)


def _primary(arm: Values) -> Values:
    """The arm in the declared metrics only."""
    return Values(arm.name, arm.task_ids, {m: arm.values[m] for m in PRIMARY if m in arm.values})


def _restricted(arm: Values, tasks: Sequence[int]) -> Values:
    place = {task: i for i, task in enumerate(arm.task_ids)}
    chosen = [place[task] for task in tasks]
    return Values(arm.name, tuple(tasks), {m: v[chosen] for m, v in arm.values.items()})


def recorded(
    name: str, split: str, metrics: Json, source: str, transitions: Json | None = None
) -> Contrast:
    """A comparison as its file states it: ``{metric: {mean_difference, confidence_interval}}``."""
    differences = []
    for metric, row in metrics.items():
        a, b = (next(row[k] for k in names if k in row) for names in (SIDE_A, SIDE_B))
        low, high = row.get("confidence_interval") or row["ci95"]
        differences.append(
            Difference(
                metric=metric,
                n=row.get("pairs", row.get("n")) or 0,
                of="tasks",
                a=a,
                b=b,
                difference=row.get("mean_difference", row.get("difference")),
                interval=(low, high),
                source=source,
            )
        )
    moved = dict(transitions) if transitions else None
    return Contrast(
        name=name,
        split=split,
        a="",
        b="",
        n=differences[0].n if differences else 0,
        convention=RECORDED,
        differences=differences,
        transitions=moved,
        mcnemar_exact=None,
        mcnemar_mid_p=None,
        newcombe=None,
        source=source,
    )
