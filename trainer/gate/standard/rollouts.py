"""Evaluations as a standard gate needs them: luck shared inside a task, looks as one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.canonical import fingerprint
from trainer.files import read_jsonl, write_json, write_jsonl
from trainer.gate.runs import load_run
from trainer.rollout.evaluate import EvaluationPlan, Execution
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


def put_together(parts: Sequence[Path], folder: Path, execution: Execution) -> dict[str, Any]:
    """Several evaluations as one run in ``folder``: all traces, all jobs, one summary."""
    plans = [load_run(part).plan for part in parts]
    plan = {**plans[0], "jobs": [job for each in plans for job in each["jobs"]]}
    traces = [trace for part in parts for trace in read_jsonl(part / "traces.jsonl")]
    write_jsonl(folder / "traces.jsonl", traces)
    manifest = {
        "plan_fingerprint": fingerprint(plan),
        "plan": plan,
        "execution": execution.to_record(),
    }
    write_json(folder / "manifest.json", manifest)
    summary = summarise(folder)
    write_json(folder / "summary.json", summary)
    return summary
