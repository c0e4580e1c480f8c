"""Evaluation runs read back: plan, completed traces, outcomes, each checked against the others.

Every function either returns values that hold together or raises InputError naming the first thing
that does not; nothing is repaired or guessed. Specification: gate-analysis.md §4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.canonical import fingerprint
from trainer.errors import InputError
from trainer.files import read_json, read_jsonl
from trainer.gate.assignment import Assignment
from trainer.rollout.traces import is_complete

Json = Mapping[str, Any]
Outcomes = Mapping[str, float]

PROVENANCE = ("model", "environment", "prompt", "runtime", "skills")
PLAN_SECTIONS = ("model", "prompt", "runtime", "environment", "task_split")
# Where an answer is computed does not change it: these keys may differ between the arms.
INCIDENTAL = {
    "model": ("transport",),
    "runtime": ("concurrency",),
    "task_split": ("source_path",),
}
KEPT = ("episode_id", "job", "provenance", "selected_skills", "final")
TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True)
class Run:
    """An evaluation on disk: its plan and its completed traces by episode id.

    Traces are reduced to the keys that a gate reads.
    """

    folder: Path
    plan: Json
    plan_fingerprint: str
    traces: Mapping[str, Json]
    failed: tuple[str, ...]

    @property
    def jobs(self) -> list[Json]:
        """The planned jobs, in order."""
        return list(self.plan["jobs"])


def load_run(folder: Path) -> Run:
    """Read an evaluation's manifest and traces.

    Raises InputError when the plan was changed, when a trace belongs to no planned job, or when
    anything follows a completed trace of the same episode.
    """
    manifest = read_json(folder / "manifest.json")
    plan = manifest["plan"]
    if manifest["plan_fingerprint"] != fingerprint(plan):
        raise InputError(
            "does not match the plan beside it",
            file=folder / "manifest.json",
            field="plan_fingerprint",
            value=manifest["plan_fingerprint"],
        )
    file = folder / "traces.jsonl"
    planned = {episode_id(job) for job in plan["jobs"]}
    completed: dict[str, Json] = {}
    failed: dict[str, None] = {}
    for number, trace in enumerate(read_jsonl(file), 1):
        name = trace.get("episode_id") if isinstance(trace, dict) else None
        if not isinstance(name, str):
            raise InputError(f"line {number} has no episode id", file=file, value=name)
        if name not in planned:
            raise InputError(
                f"line {number} belongs to no planned job",
                file=file,
                field="episode_id",
                value=name,
            )
        if name in completed:
            raise InputError(
                f"line {number} follows a completed trace of its episode",
                file=file,
                field="episode_id",
                value=name,
            )
        if is_complete(trace):
            completed[name] = {key: trace.get(key) for key in KEPT}
            failed.pop(name, None)
        else:
            failed[name] = None
    return Run(folder, plan, manifest["plan_fingerprint"], completed, tuple(failed))


def episode_id(job: Json) -> str:
    """The episode id of a job record."""
    return f"task-{job['task_id']:06d}__sample-{job['sample_id']:03d}"


def job_key(job: Json, plan: Json) -> tuple[Any, ...]:
    """What identifies a job: its seed counts only where the engine is told it."""
    key = (job["split"], job["task_id"], job["sample_id"])
    sampling = plan["model"].get("sampling", {})
    return (*key, job["seed"]) if sampling.get("send_seed", True) else key


def core(section: str, value: object) -> object:
    """A provenance section without the keys that may differ between equal experiments."""
    if not isinstance(value, Mapping):
        return value
    return {key: item for key, item in value.items() if key not in INCIDENTAL.get(section, ())}


def require_same_sections(plan: Json, expected: Json, sections: Iterable[str], file: Path) -> None:
    """Raise InputError for the first section in which two plans differ."""
    for section in sections:
        found, wanted = core(section, plan.get(section)), core(section, expected.get(section))
        if found != wanted:
            raise InputError(
                f"differs from the gate's, which is {wanted!r}",
                file=file,
                field=f"plan.{section}",
                value=found,
                remedy="evaluate both arms with the same checkpoint and settings",
            )


def require_same_jobs(plan: Json, expected: Json, file: Path) -> None:
    """Raise InputError unless two plans hold the same jobs, each once."""
    found = [job_key(job, plan) for job in plan["jobs"]]
    wanted = [job_key(job, expected) for job in expected["jobs"]]
    for keys in (found, wanted):
        if len(set(keys)) != len(keys):
            twice = next(key for key in keys if keys.count(key) > 1)
            raise InputError("a job is planned twice", file=file, field="plan.jobs", value=twice)
    if set(found) != set(wanted):
        raise InputError(
            f"{len(set(found) - set(wanted))} jobs are not in the gate's plan and "
            f"{len(set(wanted) - set(found))} of its jobs are missing",
            file=file,
            field="plan.jobs",
            value=sorted(set(found) ^ set(wanted))[0],
        )


def require_agreeing_jobs(plan: Json, expected: Json, file: Path) -> None:
    """Raise InputError when two plans give one episode different splits or seeds."""
    wanted = {episode_id(job): job_key(job, expected) for job in expected["jobs"]}
    splits = {job["split"] for job in expected["jobs"]}
    for job in plan["jobs"]:
        name, key = episode_id(job), job_key(job, plan)
        if job["split"] not in splits or wanted.get(name, key) != key:
            raise InputError(
                f"{name} is planned as {wanted.get(name)} in the gate",
                file=file,
                field="plan.jobs",
                value=key,
            )


def check_traces(run: Run, assignments: Mapping[str, Assignment] | None = None) -> Json:
    """Check each completed trace against its job, the plan and what it was to show.

    Without ``assignments`` the run must be bare. Returns the provenance (without skills) that all
    traces share. Raises InputError on the first difference.
    """
    file = run.folder / "traces.jsonl"
    jobs = {episode_id(job): job for job in run.jobs}
    shared: Json | None = None
    for name, trace in run.traces.items():
        if job_key(trace["job"], run.plan) != job_key(jobs[name], run.plan):
            raise InputError(f"{name} is of another job", file=file, value=trace["job"])
        provenance = trace["provenance"] or {}
        for section in PROVENANCE:
            if not isinstance(provenance.get(section), Mapping) or not provenance[section]:
                raise InputError(
                    f"{name} lacks provenance",
                    file=file,
                    field=f"provenance.{section}",
                    value=provenance.get(section),
                )
        for section in ("model", "prompt", "runtime", "environment"):
            found = core(section, provenance[section])
            wanted = core(section, run.plan[section])
            if section == "environment":  # a trace may say more than the plan could know
                found = {key: provenance[section].get(key) for key in run.plan[section]}
            if found != wanted:
                raise InputError(
                    f"{name} was not played as planned, which was {wanted!r}",
                    file=file,
                    field=f"provenance.{section}",
                    value=found,
                )
        _check_shown(name, trace, None if assignments is None else assignments[name], file)
        signature = {key: core(key, provenance[key]) for key in PROVENANCE if key != "skills"}
        if shared is None:
            shared = signature
        elif signature != shared:
            raise InputError(f"{name} was played under other conditions than the rest", file=file)
    return shared or {}


def _check_shown(name: str, trace: Json, assignment: Assignment | None, file: Path) -> None:
    shown = [skill["skill_id"] for skill in trace["selected_skills"] or []]
    wanted = [] if assignment is None else list(assignment.included)
    if shown != wanted:
        raise InputError(
            f"{name} showed other chunks than {wanted}",
            file=file,
            field="selected_skills",
            value=shown,
        )
    bare = trace["provenance"]["skills"] == {"provider": "none"}
    if bare != (assignment is None):
        raise InputError(
            f"{name} has the wrong skill provider",
            file=file,
            field="provenance.skills",
            value=trace["provenance"]["skills"],
        )


def run_outcomes(run: Run) -> dict[str, Outcomes]:
    """Reward and parts of every completed trace. Raises InputError unless all have equal parts."""
    file = run.folder / "traces.jsonl"
    outcomes: dict[str, Outcomes] = {}
    names: set[str] = set()
    for name, trace in run.traces.items():
        found = outcomes_of(trace, file)
        names = names or set(found)
        if set(found) != names:
            raise InputError(
                f"{name} has other reward parts than the rest",
                file=file,
                field="final.reward_detail",
                value=sorted(set(found) ^ names),
            )
        outcomes[name] = found
    return outcomes


def outcomes_of(trace: Json, file: Path) -> dict[str, float]:
    """``reward`` and every ``r_*`` of one trace, in sorted order with ``reward`` last."""
    final = trace["final"]
    detail = final.get("reward_detail")
    parts = {k: v for k, v in (detail or {}).items() if k.startswith("r_")}
    values = {**dict(sorted(parts.items())), "reward": final.get("reward")}
    for part, value in values.items():
        real = isinstance(value, int | float) and not isinstance(value, bool)
        if not real or not math.isfinite(value):
            raise InputError(
                f"{trace['episode_id']} has no finite value", file=file, field=part, value=value
            )
    for part in ("r_strict", "r_success"):
        if part not in values:
            raise InputError(f"{trace['episode_id']} has no such part", file=file, field=part)
    outcomes = {part: float(value) for part, value in values.items()}
    if abs(outcomes["reward"] - outcomes["r_strict"]) > TOLERANCE:
        raise InputError(
            f"{trace['episode_id']}: the reward must equal its strict part",
            file=file,
            field="reward",
            value=(outcomes["reward"], outcomes["r_strict"]),
        )
    return outcomes
