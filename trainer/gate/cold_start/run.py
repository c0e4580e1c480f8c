"""The cold-start gate as a stage: a draft in, the first active bank out.

Rollouts, pairs, estimates and resuming are those of a published gate; the draw, the documents and
the manifest are its own. Specification: gate-analysis.md §10.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from trainer.gate.artefacts import skill_markdown
from trainer.gate.assignment import Assignment, design_matrix
from trainer.gate.cold_start.design import assignment_document, draw_assignments
from trainer.gate.cold_start.documents import (
    ESTIMATOR,
    MANIFEST_SCHEMA,
    PROTOCOL,
    active_bank,
    contributions_csv,
    contributions_document,
    control_bank,
)
from trainer.gate.cold_start.draft import Draft, load_draft
from trainer.gate.config import ColdStartGateConfig
from trainer.gate.folder import COLD_START_MANIFEST
from trainer.gate.judgement import Json, Judgement
from trainer.gate.published import judge as published
from trainer.gate.published.run import PairedGate
from trainer.gate.regression import check_design
from trainer.gate.slots import Layout


@dataclass(frozen=True)
class ColdStartGate(PairedGate):
    """One masked rollout a task, every chunk of the draft shown by a fair coin."""

    config: ColdStartGateConfig

    manifest_name: ClassVar[str] = COLD_START_MANIFEST
    manifest_schema: ClassVar[str] = MANIFEST_SCHEMA
    outputs: ClassVar[tuple[str, ...]] = (
        "contributions.json",
        "contributions.csv",
        "inference.json",
        "positive_control_skillbank.json",
        "negative_control_skillbank.json",
        "selected_skillbank.json",
        "selected_skill.md",
    )

    @cached_property
    def draft(self) -> Draft:
        """What is judged."""
        return load_draft(
            self.config.draft_bank, self.config.draft, budget=self.config.active_skill_budget
        )

    @property
    def subject(self) -> Json:
        return {"draft_sha256": self.draft.draft_sha256}

    @property
    def budget(self) -> int:
        return self.draft.budget

    @cached_property
    def layout(self) -> Layout:
        return self.draft.layout

    @property
    def protocol(self) -> Json:
        return PROTOCOL

    @cached_property
    def assignments(self) -> tuple[Assignment, ...]:
        rows = draw_assignments(
            self.draft,
            task_ids=self.tasks,
            split=self.config.split,
            experiment_seed=self.config.seed,
            mask_seed=self.config.mask_seed,
        )
        check_design(design_matrix(rows, self.layout.columns), self.layout.columns)
        return rows

    @cached_property
    def assignment_file(self) -> dict[str, Any]:
        return assignment_document(self.draft, self.assignments, mask_seed=self.config.mask_seed)

    def judge(self) -> Judgement:
        observations, dropped = self.observations()
        judged = published.judge(
            self.layout,
            observations,
            dropped=dropped,
            budget=self.budget,
            pool_sha256="",
            assignment_sha256=self.assignment_sha256,
            bare_baseline=self.baseline.record,
        )
        contributions = contributions_document(
            self.draft,
            judged.selection,
            judged.contributions,
            assignment_sha256=self.assignment_sha256,
        )
        return Judgement(judged.selection, ESTIMATOR, contributions, judged.inference)

    def documents(self, judgement: Judgement) -> dict[str, Any]:
        rows = judgement.contributions["contributions"]
        coefficients = {row["chunk_id"]: row["coefficient"] for row in rows}
        bank = active_bank(
            self.draft,
            judgement.selection,
            found={
                "assignment_sha256": self.assignment_sha256,
                "estimator": dict(ESTIMATOR),
                "bare_baseline": dict(self.baseline.record),
            },
        )
        return {
            "contributions.json": judgement.contributions,
            "contributions.csv": contributions_csv(rows),
            "inference.json": judgement.inference,
            "positive_control_skillbank.json": control_bank(self.draft, coefficients, "positive"),
            "negative_control_skillbank.json": control_bank(self.draft, coefficients, "negative"),
            "selected_skillbank.json": bank,
            "selected_skill.md": skill_markdown(bank),
        }

    def settings_record(self) -> dict[str, Any]:
        draft = self.config.draft
        return {
            "name": self.config.name,
            "output_dir": self.relative(self.config.output_dir),
            "draft_path": None if draft is None else self.relative(draft),
            "draft_skillbank_path": self.relative(self.config.draft_bank),
            "bare_run_dir": self.relative(self.config.bare_run),
            "mask_seed": self.config.mask_seed,
            "active_skill_budget": self.budget,
            "min_coverage": self.config.min_coverage,
        }
