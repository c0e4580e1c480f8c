"""The published gate as a stage: one masked rollout a task, paired with the task's bare one.

Specification: gate-analysis.md §§3-8.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from trainer.files import write_json
from trainer.gate.assignment import (
    Assignment,
    assignment_document,
    design_matrix,
    draw_assignments,
)
from trainer.gate.evaluations import load_run
from trainer.gate.judgement import Judgement
from trainer.gate.pairing import Baseline, Observation, load_baseline, pair
from trainer.gate.published.judge import PROTOCOL, judge
from trainer.gate.regression import check_design
from trainer.gate.round import PoolGate
from trainer.gate.stage import Gate, Json
from trainer.rollout.evaluate import Evaluation, EvaluationPlan, build_plan, open_manifest


class PairedGate(Gate):
    """One masked rollout a task, beside the one bare rollout of the same task."""

    @cached_property
    def baseline(self) -> Baseline:
        return load_baseline(
            self.config.bare_run,
            self._plan().document,
            name=self.relative(self.config.bare_run),
        )

    def _plan(self, extra: Json | None = None) -> EvaluationPlan:
        return build_plan(
            self.world,
            self.policy,
            self.skills(self.assignments),
            split=self.config.split,
            task_ids=self.tasks,
            seed=self.config.seed,
            max_turns=self.config.max_turns,
            extra=extra,
        )

    def play(self) -> dict[str, Any]:
        folder = self.config.output_dir
        plan = self._plan({"online_validation_gate": self.identity()})
        open_manifest(folder, plan, self.execution)
        write_json(folder / "mask_assignments.json", self.assignment_file)
        skills = self.skills(self.assignments)
        return Evaluation(self.world, self.policy, skills, plan, self.execution).run(folder)

    def observations(self) -> tuple[list[Observation], list[str]]:
        """The pairs, and the episodes dropped for a missing side. Raises IncompleteError."""
        found, dropped = pair(self.assignments, load_run(self.config.output_dir), self.baseline)
        self.require_coverage(len(found), len(self.assignments), "pairs")
        return found, dropped


class PublishedGate(PoolGate, PairedGate):
    """The published profile."""

    @property
    def protocol(self) -> Json:
        return PROTOCOL

    @cached_property
    def assignments(self) -> tuple[Assignment, ...]:
        rows = draw_assignments(
            self.layout,
            task_ids=self.tasks,
            split=self.config.split,
            experiment_seed=self.config.seed,
            mask_seed=self.config.mask_seed,
        )
        check_design(design_matrix(rows, self.layout.columns), self.layout.columns)
        return rows

    @cached_property
    def assignment_file(self) -> dict[str, Any]:
        return assignment_document(
            self.layout,
            self.assignments,
            mask_seed=self.config.mask_seed,
            pool_sha256=self.pool.pool_sha256,
        )

    def judge(self) -> Judgement:
        observations, dropped = self.observations()
        return judge(
            self.layout,
            observations,
            dropped=dropped,
            budget=self.budget,
            pool_sha256=self.pool.pool_sha256,
            assignment_sha256=self.assignment_sha256,
            bare_baseline=self.baseline.record,
        )
