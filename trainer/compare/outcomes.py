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
from trainer.files import read_jsonl
from trainer.gate.evaluations import PROVENANCE, Run, core, episode_id, load_run, outcomes_of
from trainer.reading import Node, read_node
from trainer.rollout.summary import TOKEN_KINDS
from trainer.rollout.traces import is_complete

Array = NDArray[np.float64]
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm: its name and, for each metric, the values of all tasks in ascending task order."""

    name: str
    task_ids: tuple[int, ...]
    values: Mapping[str, Array]


def arms_of_file(path: Path, names: Sequence[str]) -> list[Arm]:
    """Arms of an outcomes file: a list of tasks, each with ``{reward, success}`` for every arm.

    Raises InputError for an arm that some task lacks and for a play that stands there twice.
    """
    root = read_node(path)
    rows = list(root)
    if not rows:
        raise root.error("must hold at least one task")
    found = {key: None for row in rows for key, value in row.mapping().items() if _is_arm(value)}
    known = list(found)
    _require_distinct_plays(rows)
    arms = []
    for name in names:
        if name not in known:
            raise InputError(
                "no such arm", file=path, value=name, remedy="known: " + ", ".join(known)
            )
        tasks: dict[int, list[dict[str, float]]] = {}
        for row in rows:
            tasks.setdefault(row["task_id"].integer(least=0), []).append(_row_values(row[name]))
        arms.append(arm_of(name, tasks))
    return arms


def _is_arm(value: object) -> bool:
    return isinstance(value, Mapping)


def _require_distinct_plays(rows: Sequence[Node]) -> None:
    """A row that is repeated, e.g. by joining files, would count its task's outcome twice."""
    seen: set[tuple[object, int, object]] = set()
    for row in rows:
        sample = row.get("sample_id").value
        play = (row.get("split").value, row["task_id"].integer(least=0), sample)
        if sample is not None and play in seen:
            raise row["task_id"].error(
                f"sample {sample} of this task stands in the file twice", "keep one of the rows"
            )
        seen.add(play)


def _row_values(arm: Node) -> dict[str, float]:
    values = {key: arm[key].number() for key in arm.mapping()}
    if "success" in values:
        values["r_success"] = values.pop("success")
        if not 0.0 <= values["r_success"] <= 1.0:
            raise arm["success"].error("must lie between 0 and 1")
    return values


def arms_of_runs(folders: Sequence[Path], *, across: str | None = None) -> list[Arm]:
    """Arms of two evaluation folders. Raises InputError where they differ in more than allowed.

    ``across`` names a plan section that may differ besides the skills, e.g. ``model``.
    """
    runs = [load_run(folder) for folder in folders]
    require_alignment(runs[0], runs[1], across)
    return [arm_of(str(run.folder), task_values(run)) for run in runs]


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
    for number, trace in enumerate(read_jsonl(file), 1):
        if trace["episode_id"] in run.traces and is_complete(trace):
            values = {
                **outcomes_of(trace, file),
                **behaviour(Node(trace, file, f"line {number}")),
            }
            tasks.setdefault(trace["job"]["task_id"], []).append(values)
    return tasks


def behaviour(trace: Node) -> dict[str, float]:
    """Steps, error rates (of model steps or of executed actions), tokens and time of an episode."""
    steps = list(trace["steps"])
    turns = max(1, len(steps))
    feedback = [
        found
        for step in steps
        if step["environment"].value is not None
        and (found := step["environment"].get("action_feedback").value)
    ]
    invalid = sum(Node(record).get("valid").value is False for record in feedback)
    values = {
        "steps": float(len(steps)),
        "protocol_error_rate": sum("protocol_error" in step.mapping() for step in steps) / turns,
        "policy_failure_rate": sum("policy_failure" in step.mapping() for step in steps) / turns,
        "invalid_action_rate": invalid / len(feedback) if feedback else 0.0,
        "duration_ms": trace["duration_ms"].number(),
    }
    usage = [step["model"].get("usage") for step in steps]
    for kind in TOKEN_KINDS:
        counts = [each.get(kind) for each in usage if each.value is not None]
        values[kind] = sum(count.number() for count in counts if count.value is not None)
    return values


def arm_of(name: str, tasks: Mapping[int, Sequence[Mapping[str, float]]]) -> Arm:
    """The arm of what was played of each task, repeated plays averaged."""
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
