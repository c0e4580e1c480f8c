"""What was observed: the masked and the bare run of a checkpoint, paired task by task.

The two arms may differ in one thing only, the skill text. Everything else must be equal and proven
so: checkpoint, sampling, prompt, environment, limits, tasks. A pair that misses a side is dropped
and counted; how many may be dropped is the gate's ``min_coverage``. Specification: gate-analysis.md
§§4, 5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.canonical import fingerprint
from trainer.errors import InputError
from trainer.gate.assignment import Assignment
from trainer.gate.evaluations import (
    PLAN_SECTIONS,
    Json,
    Outcomes,
    Run,
    check_traces,
    load_run,
    require_agreeing_jobs,
    require_same_jobs,
    require_same_sections,
    run_outcomes,
)


@dataclass(frozen=True, slots=True)
class Baseline:
    """A bare run that may serve as the comparison of a gate.

    ``record`` is what documents say about it; ``outcomes`` holds reward and parts by episode id.
    """

    run: Run
    outcomes: Mapping[str, Outcomes]
    record: Json

    def by_task(self) -> dict[int, Outcomes]:
        """The mean outcomes of each task over its bare rollouts."""
        plays: dict[int, list[Outcomes]] = {}
        for name, found in self.outcomes.items():
            plays.setdefault(self.run.traces[name]["job"]["task_id"], []).append(found)
        return {
            task: {part: math.fsum(p[part] for p in each) / len(each) for part in each[0]}
            for task, each in plays.items()
        }


@dataclass(frozen=True, slots=True)
class Observation:
    """One masked rollout beside the bare rollout of its task."""

    assignment: Assignment
    masked: Outcomes
    bare: Outcomes

    def delta(self, outcome: str) -> float:
        """Masked minus bare."""
        return self.masked[outcome] - self.bare[outcome]

    def to_record(self, columns: Sequence[str]) -> dict[str, Any]:
        """The row of ``observations_table``."""
        row = self.assignment.to_record(columns)
        record = {
            key: row[key]
            for key in ("episode_id", "split", "task_id", "sample_id", "mask", "included_chunk_ids")
        }
        parts = [name for name in self.masked if name != "reward"]
        return record | {
            "reward": self.masked["reward"],
            "bare_reward": self.bare["reward"],
            "delta_reward": self.delta("reward"),
            "reward_detail": {name: self.masked[name] for name in parts},
            "bare_reward_detail": {name: self.bare[name] for name in parts},
            "delta_reward_detail": {name: self.delta(name) for name in parts},
        }


def load_baseline(
    folder: Path,
    expected_plan: Json,
    *,
    require_checkpoint: bool = True,
    name: str | None = None,
    same_tasks: bool = True,
) -> Baseline:
    """Read the bare run of a gate and check it against the plan of the masked one.

    ``name`` is how documents shall call the folder (default: its path). Without ``same_tasks`` the
    bare run may hold more or fewer tasks of the same split. Raises InputError when the
    run is missing, equipped, of another checkpoint, prompt, environment or task set, or damaged.
    """
    run = load_run(folder)
    file = folder / "manifest.json"
    if run.plan.get("skills") != {"provider": "none"}:
        raise InputError(
            "the baseline of a gate must be bare",
            file=file,
            field="plan.skills",
            value=run.plan.get("skills"),
            remedy="evaluate this checkpoint without skills first",
        )
    if same_tasks:
        require_same_sections(run.plan, expected_plan, PLAN_SECTIONS, file)
        require_same_jobs(run.plan, expected_plan, file)
    else:
        sections = [section for section in PLAN_SECTIONS if section != "task_split"]
        require_same_sections(run.plan, expected_plan, sections, file)
        require_agreeing_jobs(run.plan, expected_plan, file)
    if not run.traces:
        raise InputError("no completed trace", file=folder / "traces.jsonl")
    checkpoint = str(run.plan["model"].get("checkpoint_id") or "")
    if require_checkpoint and not checkpoint:
        raise InputError("must name the checkpoint", file=file, field="plan.model.checkpoint_id")
    check_traces(run)
    outcomes = run_outcomes(run)
    names = sorted(next(iter(outcomes.values())))
    ordered = [run.traces[key] for key in sorted(run.traces)]
    record = {
        "run_dir": name or str(folder),
        "plan_fingerprint": run.plan_fingerprint,
        "observations_sha256": fingerprint(ordered),
        "observations": len(run.traces),
        "requested_observations": len(run.jobs),
        "dropped_observations": len(run.jobs) - len(run.traces),
        "checkpoint_id": checkpoint,
        "mean_outcomes": {
            each: math.fsum(found[each] for found in outcomes.values()) / len(outcomes)
            for each in names
        },
    }
    return Baseline(run, outcomes, record)


def pair(
    assignments: Sequence[Assignment], masked: Run, baseline: Baseline
) -> tuple[list[Observation], list[str]]:
    """The observations in assignment order, and the episode ids dropped for a missing side.

    Raises InputError when the two arms differ in anything but the skills shown, when the masked run
    holds other episodes than were assigned, or when no pair is left.
    """
    by_episode = {row.episode_id: row for row in assignments}
    unexpected = sorted(set(masked.traces) - set(by_episode))
    if unexpected:
        raise InputError("the masked run holds unassigned episodes", value=unexpected[0])
    masked_conditions = check_traces(masked, by_episode)
    if masked.traces and masked_conditions != check_traces(baseline.run):
        raise InputError(
            "the masked run and the bare run were played under different conditions",
            file=masked.folder,
            remedy="evaluate both arms with the same checkpoint and settings",
        )
    outcomes = run_outcomes(masked)
    observations: list[Observation] = []
    dropped: list[str] = []
    for name, row in by_episode.items():
        if name not in outcomes or name not in baseline.outcomes:
            dropped.append(name)
            continue
        if set(outcomes[name]) != set(baseline.outcomes[name]):
            raise InputError(
                f"{name} has other reward parts than its bare rollout",
                file=masked.folder / "traces.jsonl",
                field="final.reward_detail",
            )
        observations.append(Observation(row, outcomes[name], baseline.outcomes[name]))
    if not observations:
        raise InputError("no task has both a masked and a bare outcome", file=masked.folder)
    return observations, dropped
