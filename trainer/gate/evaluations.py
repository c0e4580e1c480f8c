"""Evaluation runs read back: plan, completed traces, outcomes, each checked against the others.

Every function either returns values that hold together or raises InputError naming the first thing
that does not; nothing is repaired or guessed. Specification: gate-analysis.md §4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.canonical import fingerprint
from trainer.errors import InputError
from trainer.files import read_jsonl
from trainer.gate.assignment import Assignment
from trainer.reading import Node, read_node
from trainer.rollout.traces import is_complete
from trainer.rollout.types import evaluation_id

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
    manifest = read_node(folder / "manifest.json")
    plan = _checked_plan(manifest["plan"])
    mark = manifest["plan_fingerprint"]
    if mark.value != fingerprint(plan):
        raise mark.error("does not match the plan beside it", "a frozen plan is never edited")
    file = folder / "traces.jsonl"
    planned = {episode_id(job) for job in plan["jobs"]}
    completed: dict[str, Json] = {}
    failed: dict[str, None] = {}
    for number, trace in enumerate(read_jsonl(file), 1):
        line = Node(trace, file, f"line {number}")
        name = line["episode_id"].text()
        if name not in planned:
            raise line["episode_id"].error("belongs to no planned job")
        if name in completed:
            raise line["episode_id"].error("follows a completed trace of its episode")
        if is_complete(trace):
            check_job(line["job"])
            completed[name] = {key: trace.get(key) for key in KEPT}
            failed.pop(name, None)
        else:
            failed[name] = None
    return Run(folder, plan, mark.string(), completed, tuple(failed))


def _checked_plan(plan: Node) -> Json:
    """The plan, whose jobs and model have the shape that everything here relies on."""
    for job in plan["jobs"]:
        check_job(job)
    sampling = plan["model"].get("sampling")
    if sampling.value is not None:
        sampling.mapping()
    for section in (*PLAN_SECTIONS, "skills"):
        plan[section].mapping()
    return plan.mapping()


def check_job(job: Node) -> None:
    """Raise InputError unless a job record has a split and its three numbers."""
    job["split"].text()
    job["task_id"].integer(least=0)
    job["sample_id"].integer(least=0)
    job["seed"].integer()


def episode_id(job: Json) -> str:
    """The episode id of a job record."""
    return evaluation_id(job["task_id"], job["sample_id"])


def job_key(job: Json, plan: Json) -> tuple[Any, ...]:
    """What identifies a job: its seed counts only where the engine is told it."""
    key = (job["split"], job["task_id"], job["sample_id"])
    sampling = plan["model"].get("sampling") or {}
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
        node = Node(trace, file, name)
        if job_key(trace["job"], run.plan) != job_key(jobs[name], run.plan):
            raise node["job"].error(f"is of another job than planned, {jobs[name]}")
        provenance = {}
        for section in PROVENANCE:
            provenance[section] = node["provenance"][section].mapping()
            if not provenance[section]:
                raise node["provenance"][section].error("must not be empty")
        for section in ("model", "prompt", "runtime", "environment"):
            found = core(section, provenance[section])
            wanted = core(section, run.plan[section])
            if section == "environment":  # a trace may say more than the plan could know
                found = {key: provenance[section].get(key) for key in run.plan[section]}
            if found != wanted:
                raise node["provenance"][section].error(
                    f"was not played as planned, which was {wanted!r}"
                )
        if provenance["skills"] != run.plan["skills"]:
            raise node["provenance"]["skills"].error(
                f"was not played as planned, which was {run.plan['skills']!r}"
            )
        _check_shown(node, None if assignments is None else assignments[name])
        signature = {key: core(key, provenance[key]) for key in PROVENANCE if key != "skills"}
        if shared is None:
            shared = signature
        elif signature != shared:
            section = next(key for key in signature if signature[key] != shared[key])
            raise node["provenance"][section].error(
                "was played under other conditions than the rest"
            )
    return shared or {}


def _check_shown(trace: Node, assignment: Assignment | None) -> None:
    shown = [skill["skill_id"].value for skill in trace["selected_skills"]]
    wanted = [] if assignment is None else list(assignment.included)
    if shown != wanted:
        found = Node(shown, trace.file, f"{trace.name}.selected_skills")
        raise found.error(f"must be {wanted}, in this order, as assigned")
    bare = trace["provenance"]["skills"].value == {"provider": "none"}
    if bare != (assignment is None):
        raise trace["provenance"]["skills"].error("is the wrong skill provider")


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
    final = Node(trace["final"], file, f"{trace['episode_id']}.final")
    detail = final["reward_detail"]
    outcomes = {
        part: detail[part].number() for part in sorted(detail.mapping()) if part.startswith("r_")
    }
    for part in ("r_strict", "r_success"):
        detail[part].number()
    reward = final["reward"]
    if abs(reward.number() - outcomes["r_strict"]) > TOLERANCE:
        raise reward.error(f"must equal its strict part, {outcomes['r_strict']}")
    return {**outcomes, "reward": reward.number()}
