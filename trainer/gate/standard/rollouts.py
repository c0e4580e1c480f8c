"""Evaluations as a standard gate needs them: luck shared inside a task, looks as one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.canonical import fingerprint, utc_now
from trainer.errors import InputError
from trainer.files import read_jsonl, write_json, write_jsonl
from trainer.gate.assignment import Assignment
from trainer.gate.evaluations import check_traces, load_run, run_outcomes
from trainer.gate.pairing import Baseline
from trainer.gate.standard.estimate import Outcomes, Pairs, pairs_of
from trainer.rollout.evaluate import MANIFEST_SCHEMA, EvaluationPlan, Execution
from trainer.rollout.summary import summarise
from trainer.rollout.types import EpisodeJob


@dataclass(frozen=True, slots=True)
class PairedJob(EpisodeJob):
    """A job that shares its random numbers with the other rollouts of its task.

    The luck of both rollouts of a pair, and of the bare one, cancels in their differences as far as
    the episodes run alike; each rollout by itself is as random as before.
    """

    shared_noise: str = ""

    @property
    def noise_key(self) -> str:
        """The noise of the task's first sample."""
        return self.shared_noise


def with_shared_noise(plan: EvaluationPlan, seed: int) -> EvaluationPlan:
    """The same plan, its jobs of one task sharing the random numbers of the first sample."""
    jobs = tuple(
        PairedJob(
            job.task_id,
            job.sample_id,
            job.seed,
            job.split,
            EpisodeJob.of(seed, job.task_id, 0, job.split).noise_key,
        )
        for job in plan.jobs
    )
    return EvaluationPlan(plan.document, jobs)


def read_pairs(
    rows: Sequence[Assignment], columns: Sequence[str], folders: Sequence[Path], baseline: Baseline
) -> tuple[Pairs, list[str]]:
    """The complete pairs of all looks, and the episode ids of those that are not complete.

    Raises InputError when a masked run holds other episodes than were assigned, was played under
    other conditions than the bare one, or leaves no pair.
    """
    by_episode = {row.episode_id: row for row in rows}
    conditions = check_traces(baseline.run)
    masked: dict[str, Outcomes] = {}
    for folder in folders:
        run = load_run(folder)
        unexpected = sorted(set(run.traces) - set(by_episode))
        if unexpected:
            raise InputError(
                "the masked run holds unassigned episodes",
                file=folder / "traces.jsonl",
                value=unexpected[0],
            )
        if run.traces and check_traces(run, by_episode) != conditions:
            raise InputError(
                "the masked run and the bare run were played under different conditions",
                file=folder,
                remedy="evaluate both arms with the same checkpoint and settings",
            )
        masked |= run_outcomes(run)
    if not masked:
        raise InputError("no masked rollout is complete", file=folders[0])
    parts = set(next(iter(baseline.outcomes.values())))
    for name, found in masked.items():
        if set(found) != parts:
            raise InputError(
                f"{name} has other reward parts than the bare rollouts",
                file=folders[0] / "traces.jsonl",
                field="final.reward_detail",
                value=sorted(set(found) ^ parts),
            )
    pairs, dropped = pairs_of(rows, columns, masked, baseline.by_task())
    if not pairs.task_ids:
        raise InputError("no task has both of its masked rollouts", file=folders[0])
    return pairs, dropped


def put_together(parts: Sequence[Path], folder: Path, execution: Execution) -> dict[str, Any]:
    """Several evaluations as one run in ``folder``: all traces, all jobs, one summary."""
    plans = [load_run(part).plan for part in parts]
    jobs = [job for each in plans for job in each["jobs"]]
    tasks = list(dict.fromkeys(job["task_id"] for job in jobs))
    split = {"task_count": len(tasks), "task_ids_sha256": fingerprint(tasks)}
    plan = {**plans[0], "jobs": jobs, "task_split": {**plans[0]["task_split"], **split}}
    traces = [trace for part in parts for trace in read_jsonl(part / "traces.jsonl")]
    write_jsonl(folder / "traces.jsonl", traces)
    manifest = {
        "schema_version": MANIFEST_SCHEMA,
        "created_at": utc_now(),
        "plan_fingerprint": fingerprint(plan),
        "plan": plan,
        "execution": execution.to_record(),
    }
    write_json(folder / "manifest.json", manifest)
    summary = summarise(folder)
    write_json(folder / "summary.json", summary)
    return summary
