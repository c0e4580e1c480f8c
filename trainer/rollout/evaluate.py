"""Evaluation: a plan is frozen, run in whole batches, resumed where it stopped, summarised.

``manifest.json`` holds the plan, which is everything that can influence a result, its fingerprint,
and apart from it the facts of execution (folder, batch size, threads). ``traces.jsonl`` grows by a
whole batch at a time; a torn batch is cut away and played again, so a run that was killed ends with
the same bytes as one that was not, times apart. Episodes that failed for technical reasons are
played again after all others, up to ``attempts`` times. Specification: environment.md §6.5-6.6,
training.md §9.21-22.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from trainer.canonical import fingerprint, utc_now
from trainer.errors import InputError
from trainer.files import append_jsonl, read_json, write_json
from trainer.progress import Progress, Tally
from trainer.rollout.conversation import conversation_builder
from trainer.rollout.driver import BATCH_SIZE, provenance_of, run_episodes
from trainer.rollout.live import BATCH, FOLDER, LiveFile, forget
from trainer.rollout.policy import Policy
from trainer.rollout.providers import SkillAssignment, arm_of
from trainer.rollout.recorded import RecordedTraces
from trainer.rollout.summary import summarise
from trainer.rollout.types import EpisodeJob, EpisodeRequest, EpisodeResult
from trainer.shop.world import World

PIPELINE_VERSION = "intraskill-evaluation-v1"
MANIFEST_SCHEMA = "shopsimrl-eval-manifest-v2"


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """What will be evaluated. Two plans with one fingerprint give the same results."""

    document: Mapping[str, Any]
    jobs: tuple[EpisodeJob, ...]

    @property
    def fingerprint(self) -> str:
        """Hash of the plan, the identity under which a run may be resumed."""
        return fingerprint(self.document)


def choose_tasks(
    tasks: Sequence[int], *, limit: int | None, sample_size: int | None, seed: int
) -> tuple[int, ...]:
    """All tasks, the first ``limit``, or a drawn subset. Raises InputError when there are fewer."""
    wanted = limit if sample_size is None else sample_size
    if wanted is not None and wanted > len(tasks):
        raise InputError(
            f"the split has only {len(tasks)} tasks",
            field="tasks.limit" if sample_size is None else "tasks.sample_size",
            value=wanted,
            remedy="Ask for fewer",
        )
    if sample_size is not None:
        return tuple(Random(seed).sample(list(tasks), sample_size))
    return tuple(tasks[:limit])


def build_plan(
    world: World,
    policy: Policy,
    skills: SkillAssignment,
    *,
    split: str,
    task_ids: Sequence[int],
    seed: int,
    repeats: int = 1,
    max_turns: int | None = None,
    extra: Mapping[str, Any] | None = None,
) -> EvaluationPlan:
    """Freeze an evaluation; ``extra`` are further sections that belong to its identity."""
    jobs = tuple(
        EpisodeJob.of(seed, task_id, sample_id, split)
        for task_id in task_ids
        for sample_id in range(repeats)
    )
    if not jobs:
        raise InputError("the plan has no episodes", field="tasks")
    turns = world.profile.max_actions if max_turns is None else max_turns
    shared = provenance_of(world, policy, conversation_builder(world), max_turns=turns)
    document = {
        "pipeline_version": PIPELINE_VERSION,
        "experiment": {"seed": seed},
        "model_id": shared["model"].get("checkpoint_id"),
        "model": shared["model"],
        "task_split": {
            "name": split,
            "task_count": len(task_ids),
            "task_ids_sha256": fingerprint(list(task_ids)),
        },
        "jobs": [job.to_record() for job in jobs],
        "environment": shared["environment"],
        "runtime": shared["runtime"],
        "prompt": shared["prompt"],
        "skills": skills.identity(),
        **(extra or {}),
    }
    return EvaluationPlan(document, jobs)


@dataclass(frozen=True, slots=True)
class Execution:
    """Facts that are no part of a plan's identity. ``facts`` are recorded as they are."""

    batch_size: int = BATCH_SIZE
    attempts: int = 3
    record_tokens: bool = False
    facts: Mapping[str, Any] | None = None

    def to_record(self) -> dict[str, Any]:
        """The manifest's ``execution`` section."""
        return {
            "batch_size": self.batch_size,
            "attempts": self.attempts,
            "record_tokens": self.record_tokens,
            **(self.facts or {}),
        }


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A plan with what it takes to carry it out."""

    world: World
    policy: Policy
    skills: SkillAssignment
    plan: EvaluationPlan
    execution: Execution = Execution()

    def run(self, folder: Path, tally: Tally | None = None) -> dict[str, Any]:
        """Play what is not yet recorded in ``folder`` and return the summary, which is written.
        What failed in all attempts of earlier runs is tried as often again.

        ``tally`` counts the episodes of a run that is part of a stage; without one the run is a
        stage of its own, with its own ``progress.json``. Raises InputError when the folder holds a
        run of another plan, and StopRequested between batches.
        """
        open_manifest(folder, self.plan, self.execution)
        forget(folder)
        recorded = RecordedTraces(folder / "traces.jsonl")
        total = len(self.plan.jobs)
        if tally is None:
            tally = Progress(folder / "progress.json", unit="episode", total=total)
        plan = self.plan.document
        what = f"{arm_of(plan['skills'])} on {plan['task_split']['name']}"
        what += f" ({folder.parent.name}/{folder.name})"
        pending: Sequence[EpisodeJob] = self.plan.jobs
        attempt, most, played = 0, self.execution.attempts, False
        while pending and (attempt < most or not played):
            if attempt == most:  # all of them in vain before this run, whose cause may be gone
                most += self.execution.attempts
            attempt += 1
            failed: list[EpisodeJob] = []
            settled = total - len(pending)
            for batch, complete, is_new in self._batches(pending, recorded):
                played = played or is_new
                missed = [job for job, whole in zip(batch, complete, strict=True) if not whole]
                failed += missed
                settled += len(batch) - len(missed)
                missing = f", attempt {attempt}: {len(failed)} failed" * bool(failed)
                tally.update(settled, what + missing)
            pending = failed
        recorded.finish()
        summary = summarise(folder)
        write_json(folder / "summary.json", summary)
        return summary

    def _batches(
        self, jobs: Sequence[EpisodeJob], recorded: RecordedTraces
    ) -> Iterator[tuple[Sequence[EpisodeJob], list[bool], bool]]:
        """Each batch with which of its episodes are complete, and whether it was played now."""
        size = self.execution.batch_size
        for start in range(0, len(jobs), size):
            batch = jobs[start : start + size]
            complete = recorded.take([job.episode_id for job in batch])
            is_new = complete is None
            if complete is None:
                live = LiveFile(recorded.path.parent / FOLDER / BATCH)
                try:
                    results = self._play(batch, live)
                    append_jsonl(recorded.path, [result.trace for result in results])
                finally:
                    live.close()
                complete = [result.completed for result in results]
            yield batch, complete, is_new

    def _play(self, jobs: Sequence[EpisodeJob], live: LiveFile) -> list[EpisodeResult]:
        return run_episodes(
            self.world,
            self.policy,
            [_request(job, self.skills) for job in jobs],
            batch_size=len(jobs),
            max_turns=self.plan.document["runtime"]["max_steps"],
            exact_tokens=self.execution.record_tokens,
            live=live,
        )


def _request(job: EpisodeJob, skills: SkillAssignment) -> EpisodeRequest:
    return EpisodeRequest(
        job=job,
        episode_id=job.episode_id,
        noise_key=job.noise_key,
        chunks=skills.chunks_for(job),
        skills=skills.identity(),
    )


def open_manifest(folder: Path, plan: EvaluationPlan, execution: Execution) -> None:
    """Write the manifest, or check that the one in the folder is of the same plan."""
    path = folder / "manifest.json"
    if not path.exists():
        write_json(
            path,
            {
                "schema_version": MANIFEST_SCHEMA,
                "created_at": utc_now(),
                "plan_fingerprint": plan.fingerprint,
                "plan": plan.document,
                "execution": execution.to_record(),
            },
        )
        return
    manifest = read_json(path)
    if manifest.get("plan_fingerprint") != plan.fingerprint:
        raise InputError(
            f"the folder holds a run of another plan (this plan: {plan.fingerprint}; differing: "
            f"{', '.join(_differences(manifest.get('plan') or {}, plan.document))})",
            file=path,
            field="plan_fingerprint",
            value=manifest.get("plan_fingerprint"),
            remedy="Choose another output_dir, or restore the settings of that run",
        )
    before = manifest["execution"]
    for key, value in execution.to_record().items():
        if before.get(key) != value:
            raise InputError(
                f"the run was started with {key} {before.get(key)!r}",
                file=path,
                field=f"execution.{key}",
                value=value,
                remedy="Resume with the same value: it decides which episodes share a batch",
            )


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
