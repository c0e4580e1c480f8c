"""Task values of the arms to compare, from an outcomes file or from evaluation folders.

A task that was played several times contributes the mean of its plays. Both arms must hold the same
tasks, and evaluation folders must agree in everything but the skill text (or, when asked, the
checkpoint). Specification: gate-analysis.md §13.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.errors import InputError
from trainer.files import read_json, read_jsonl
from trainer.gate.runs import PROVENANCE, Run, core, episode_id, load_run, outcomes_of

Array = NDArray[np.float64]
Json = Mapping[str, Any]
TOKENS = ("prompt_tokens", "completion_tokens", "total_tokens", "reasoning_tokens")


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm: its name and, for each metric, the values of all tasks in ascending task order."""

    name: str
    task_ids: tuple[int, ...]
    values: Mapping[str, Array]


def arms_of_file(path: Path, names: Sequence[str]) -> list[Arm]:
    """Arms of an outcomes file: a list of tasks, each with ``{reward, success}`` for every arm."""
    rows = read_json(path)
    if not isinstance(rows, list) or not rows:
        raise InputError("must be a non-empty list of tasks", file=path)
    known = [key for key, value in rows[0].items() if isinstance(value, Mapping)]
    arms = []
    for name in names:
        if name not in known:
            raise InputError(
                "no such arm", file=path, value=name, remedy="known: " + ", ".join(known)
            )
        tasks: dict[int, list[dict[str, float]]] = {}
        for number, row in enumerate(rows):
            tasks.setdefault(row["task_id"], []).append(_row_values(row.get(name), path, number))
        arms.append(_arm(name, tasks))
    return arms


def _row_values(value: object, path: Path, number: int) -> dict[str, float]:
    if not isinstance(value, Mapping):
        raise InputError(f"row {number} lacks an arm", file=path, value=value)
    found = {"r_success" if key == "success" else str(key): v for key, v in value.items()}
    for key, item in found.items():
        if isinstance(item, bool) or not isinstance(item, int | float):
            raise InputError(f"row {number} is no number", file=path, field=key, value=item)
    return {key: float(item) for key, item in found.items()}


def arms_of_runs(folders: Sequence[Path], *, across: str | None = None) -> list[Arm]:
    """Arms of two evaluation folders. Raises InputError where they differ in more than allowed.

    ``across`` names a plan section that may differ besides the skills, e.g. ``model``.
    """
    runs = [load_run(folder) for folder in folders]
    require_alignment(runs[0], runs[1], across)
    return [_arm(str(run.folder), task_values(run)) for run in runs]


def require_alignment(first: Run, second: Run, across: str | None) -> None:
    """Raise InputError unless both runs played the same jobs completely under equal conditions."""
    sections = ["pipeline_version", "model", "task_split", "environment", "runtime", "prompt"]
    for section in (s for s in sections if s != across):
        a, b = (core(section, run.plan.get(section)) for run in (first, second))
        if a != b:
            raise InputError(
                f"the arms differ: {a!r} and {b!r}",
                file=second.folder,
                field=f"plan.{section}",
                remedy="compare runs that differ in the skill only, or allow it with --across",
            )
    if {episode_id(job) for job in first.jobs} != {episode_id(job) for job in second.jobs}:
        raise InputError("the arms played different jobs", file=second.folder, field="plan.jobs")
    for run in (first, second):
        missing = len(run.jobs) - len(run.traces)
        if missing:
            raise InputError(
                f"{missing} of {len(run.jobs)} episodes are not completed",
                file=run.folder,
                remedy="resume the evaluation first",
            )
        conditions = {
            repr({s: core(s, trace["provenance"].get(s)) for s in PROVENANCE if s != "skills"})
            for trace in run.traces.values()
        }
        if len(conditions) != 1:
            raise InputError("its episodes were played under different conditions", file=run.folder)


def task_values(run: Run) -> dict[int, list[dict[str, float]]]:
    """Outcome, behaviour and cost of every completed episode, by task."""
    file = run.folder / "traces.jsonl"
    tasks: dict[int, list[dict[str, float]]] = {}
    for trace in read_jsonl(file):
        if trace["episode_id"] in run.traces and trace["status"] == "completed":
            values = {**outcomes_of(trace, file), **behaviour(trace)}
            tasks.setdefault(trace["job"]["task_id"], []).append(values)
    return tasks


def behaviour(trace: Json) -> dict[str, float]:
    """Steps, error rates (of model steps or of executed actions), tokens and time of an episode."""
    steps = trace["steps"]
    turns = max(1, len(steps))
    feedback = [
        step["environment"]["action_feedback"]
        for step in steps
        if step["environment"] is not None and step["environment"].get("action_feedback")
    ]
    invalid = sum(record["valid"] is False for record in feedback)
    values = {
        "steps": float(len(steps)),
        "protocol_error_rate": sum("protocol_error" in step for step in steps) / turns,
        "policy_failure_rate": sum("policy_failure" in step for step in steps) / turns,
        "invalid_action_rate": invalid / len(feedback) if feedback else 0.0,
        "duration_ms": float(trace["duration_ms"]),
    }
    usage = [step["model"].get("usage") or {} for step in steps]
    for kind in TOKENS:
        values[kind] = float(sum(each.get(kind, 0) for each in usage))
    return values


def _arm(name: str, tasks: Mapping[int, Sequence[Mapping[str, float]]]) -> Arm:
    ids = tuple(sorted(tasks))
    metrics = sorted(set.intersection(*(set(play) for plays in tasks.values() for play in plays)))
    return Arm(
        name,
        ids,
        {
            metric: np.array(
                [math.fsum(play[metric] for play in tasks[i]) / len(tasks[i]) for i in ids]
            )
            for metric in metrics
        },
    )
