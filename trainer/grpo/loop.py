"""A round of training: steps of rollouts and updates, resumable after any of them.

The loop is the same for every engine that holds its weights in this process. A round starts from a
frozen checkpoint, whose ``checkpoint.json`` says how many steps, groups and updates the experiment
has behind it, and ends with the next one. Repeating a round with the same inputs and thread count
gives the same documents, times excluded; so does killing and resuming it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from trainer.canonical import fingerprint, utc_now
from trainer.config import TrainConfig
from trainer.errors import InputError
from trainer.files import read_json, write_json
from trainer.grpo.engine import TrainingEngine
from trainer.grpo.filter import FailureStreak
from trainer.grpo.publish import Counters, RoundFolder
from trainer.grpo.step import StepPlan, StepResult, play_step
from trainer.grpo.tasks import TaskOrder
from trainer.grpo.updates import means, split_groups
from trainer.progress import Progress
from trainer.rollout.conversation import conversation_builder
from trainer.rollout.driver import provenance_of, run_episodes
from trainer.rollout.live import LiveFile, step_file
from trainer.rollout.types import EpisodeRequest, EpisodeResult
from trainer.shop.world import World
from trainer.sinks.base import MetricPoint, Sinks
from trainer.skills.curriculum import Curriculum

MANIFEST_SCHEMA = "intraskill-training-manifest-v1"


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """Everything a round works with; ``start`` are the counters of its starting checkpoint."""

    config: TrainConfig
    world: World
    engine: TrainingEngine
    curriculum: Curriculum
    tasks: Sequence[int]
    start: Counters
    sinks: Sinks = field(default_factory=Sinks)

    def run(self) -> dict[str, Any]:
        """Train to the end of the round and return its record.

        Raises StopRequested at the end of a batch or step; the state on disk is then whole.
        """
        folder = RoundFolder(self.config.output_dir)
        manifest = self._open_manifest(folder)
        counters = self._resume(folder)
        last = self.start.step + self.config.steps
        progress = Progress(
            folder.path / "progress.json",
            unit="step",
            total=self.config.steps,
            done=counters.step - self.start.step,
        )
        tasks = TaskOrder(self.tasks, self.config.seed)
        streak = FailureStreak(
            self.config.rollout.max_consecutive_failed_groups, counters.failed_groups_in_a_row
        )
        while counters.step < last:
            message = self._step(folder, counters, tasks, streak)
            progress.update(counters.step - self.start.step, message)
        return self._finish(folder, counters, manifest)

    def _step(
        self, folder: RoundFolder, counters: Counters, tasks: TaskOrder, streak: FailureStreak
    ) -> str:
        """One step: play, update, publish, then the state. Returns a line for people."""
        started, step = time.monotonic(), counters.step + 1
        live = LiveFile(step_file(folder.path, step))
        try:
            result = play_step(self._plan(step, counters, tasks, streak, live))
        except BaseException:
            live.close()
            raise
        updates = self._update(step, result, counters)
        counters.step = step
        counters.next_group += len(result.groups)
        counters.failed_groups_in_a_row = streak.count
        seconds = {**result.seconds, "step": time.monotonic() - started}
        point = MetricPoint(
            step=step,
            metrics={**result.metrics, **means(updates)},
            seconds={name: round(value, 4) for name, value in seconds.items()},
        )
        folder.publish(step, result, updates=updates, metrics=point)
        live.close()
        self.engine.save_state(folder.state, folder.resume_record(counters))
        self.sinks.log(point)
        success = result.metrics.get("rollout/shopsim/success_rate")
        shown = "" if success is None else f", success {success:.3f}"
        return f"kept {len(result.kept)} of {len(result.groups)} groups{shown}"

    def _plan(
        self,
        step: int,
        counters: Counters,
        tasks: TaskOrder,
        streak: FailureStreak,
        live: LiveFile,
    ) -> StepPlan:
        return StepPlan(
            step=step,
            first_group=counters.next_group,
            weight_version=counters.updates,
            seed=self.config.seed,
            curriculum=self.curriculum,
            tasks=tasks,
            settings=self.config.rollout,
            std_normalisation=self.config.optimiser.std_normalisation,
            streak=streak,
            play=partial(self._play, live),
        )

    def _play(self, live: LiveFile, requests: Sequence[EpisodeRequest]) -> list[EpisodeResult]:
        return run_episodes(
            self.world,
            self.engine.policy,
            requests,
            batch_size=self.config.rollout.batch_size,
            max_turns=self.config.rollout.max_turns,
            exact_tokens=True,
            live=live,
        )

    def _update(self, step: int, result: StepResult, counters: Counters) -> list[dict[str, Any]]:
        """The step's optimiser updates, each on whole groups; their lines for ``updates.jsonl``."""
        started = time.monotonic()
        lines = []
        for part in split_groups(result.kept, self.config.optimiser.updates_per_step):
            began = time.monotonic()
            metrics = self.engine.update(result.training_episodes(part))
            counters.updates += 1
            lines.append(
                {
                    "update": counters.updates,
                    "step": step,
                    "groups": [group.group_index for group in part],
                    "metrics": dict(metrics),
                    "seconds": round(time.monotonic() - began, 4),
                }
            )
        result.seconds["update"] = time.monotonic() - started
        return lines

    def _open_manifest(self, folder: RoundFolder) -> dict[str, Any]:
        """Write the round's identity, or check that the folder holds this very round."""
        path = folder.path / "manifest.json"
        plan = self.plan()
        identity = fingerprint(plan)
        facts = dict(self.engine.facts())
        if not path.exists():
            manifest = {
                "schema_version": MANIFEST_SCHEMA,
                "created_at": utc_now(),
                "plan_fingerprint": identity,
                "plan": plan,
                "execution": facts,
            }
            write_json(path, manifest)
            return manifest
        manifest = read_json(path)
        if manifest["plan_fingerprint"] != identity:
            differing = sorted(key for key in plan if manifest["plan"].get(key) != plan[key])
            raise InputError(
                f"the folder holds another round (differing: {', '.join(differing)})",
                file=path,
                field="plan_fingerprint",
                value=manifest["plan_fingerprint"],
                remedy="Choose another output_dir, or restore the settings of that round",
            )
        if manifest["execution"] != facts:
            raise InputError(
                f"the round was started with {manifest['execution']}",
                file=path,
                field="execution",
                value=facts,
                remedy="Resume with the same thread count: it decides the last bits of sums",
            )
        return dict(manifest)

    def plan(self) -> dict[str, Any]:
        """Everything that can influence a result of the round."""
        config = self.config
        shared = provenance_of(
            self.world,
            self.engine.policy,
            conversation_builder(self.world),
            max_turns=config.rollout.max_turns or self.world.profile.max_actions,
        )
        return {
            "round_id": config.round_id,
            "seed": config.seed,
            "steps": config.steps,
            "start": asdict(self.start),
            "curriculum": self.curriculum.identity(),
            "task_ids_sha256": fingerprint(list(self.tasks)),
            "task_count": len(self.tasks),
            "rollout": config.rollout.model_dump(mode="json"),
            "optimiser": config.optimiser.model_dump(mode="json"),
            **shared,
        }

    def _resume(self, folder: RoundFolder) -> Counters:
        if not folder.state.exists():
            folder.clear()
            return Counters(**asdict(self.start))
        return folder.rewind(self.engine.load_state(folder.state))

    def _finish(
        self, folder: RoundFolder, counters: Counters, manifest: Mapping[str, Any]
    ) -> dict[str, Any]:
        checkpoint = self.engine.save_checkpoint(
            folder.checkpoint,
            {
                **asdict(counters),
                "round_id": self.config.round_id,
                "curriculum_state_id": self.curriculum.state_id,
                "plan_fingerprint": manifest["plan_fingerprint"],
            },
        )
        return {
            "status": "complete",
            "round_id": self.config.round_id,
            "steps": self.config.steps,
            "last_step": counters.step,
            "updates": counters.updates - self.start.updates,
            "groups": counters.next_group - self.start.next_group,
            "checkpoint": folder.checkpoint.name,
            "checkpoint_id": checkpoint["checkpoint_id"],
            "weights_sha256": checkpoint["weights_sha256"],
        }


def starting_counters(checkpoint: Path) -> Counters:
    """The counters a checkpoint carries; a warm-started one has none behind it."""
    record = read_json(checkpoint / "checkpoint.json")
    known = Counters.__dataclass_fields__
    return Counters(**{name: record[name] for name in known if name in record})
