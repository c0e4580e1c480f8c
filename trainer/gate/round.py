"""The gate of a round: its candidate pool in, the next bank and the proposal ledger out.

Both profiles are gates of a round; they differ in design, estimate and decision (``run``,
``standard.run``). Specification: gate-analysis.md §§8, 9.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from trainer.gate.artefacts import MANIFEST_SCHEMA, selected_bank, skill_markdown
from trainer.gate.config import GateConfig
from trainer.gate.folder import MANIFEST
from trainer.gate.judgement import Judgement
from trainer.gate.ledger import attach_results, load_ledger
from trainer.gate.pool import CandidatePool, load_pool
from trainer.gate.slots import Layout, build_layout
from trainer.gate.stage import Gate, Json


@dataclass(frozen=True)
class PoolGate(Gate):
    """The gate of a round: its pool in, the next bank and the proposal ledger out."""

    config: GateConfig

    manifest_name: ClassVar[str] = MANIFEST
    manifest_schema: ClassVar[str] = MANIFEST_SCHEMA
    outputs: ClassVar[tuple[str, ...]] = (
        "contributions.json",
        "inference.json",
        "selected_skillbank.json",
        "selected_skill.md",
        "proposal_ledger.jsonl",
    )

    @cached_property
    def pool(self) -> CandidatePool:
        """The round's proposals."""
        return load_pool(self.config.candidate_pool)

    @property
    def subject(self) -> Json:
        return {"pool_sha256": self.pool.pool_sha256}

    @property
    def budget(self) -> int:
        return self.config.active_skill_budget

    @cached_property
    def layout(self) -> Layout:
        return build_layout(self.pool)

    def identity(self) -> dict[str, Any]:
        return {"profile": self.config.profile, **super().identity()}

    def inputs(self) -> dict[str, Any]:
        return {"proposal_checkpoint": self.pool.proposal_checkpoint, **super().inputs()}

    def settings_record(self) -> dict[str, Any]:
        return {
            "name": self.config.name,
            "output_dir": self.relative(self.config.output_dir),
            "candidate_pool_path": self.relative(self.config.candidate_pool),
            "bare_run_dir": self.relative(self.config.bare_run),
            "mask_seed": self.config.mask_seed,
            "active_skill_budget": self.budget,
            "profile": self.config.profile,
            "min_coverage": self.config.min_coverage,
        }

    def next_bank(self, judgement: Judgement) -> dict[str, Any]:
        """The document of the bank that a judgement selects."""
        return selected_bank(
            self.layout,
            judgement.selection,
            self.pool,
            assignment_sha256=self.assignment_sha256,
            budget=self.budget,
            bare_baseline=self.baseline.record,
            estimator=judgement.estimator,
        )

    def documents(self, judgement: Judgement) -> dict[str, Any]:
        bank = self.next_bank(judgement)
        ledger = attach_results(
            load_ledger(self.config.candidate_pool.parent / "proposal_ledger.jsonl"),
            self.pool,
            judgement.selection,
            evaluation_checkpoint=self.baseline.record["checkpoint_id"],
            estimator=judgement.estimator["name"],
            bare_observations_sha256=self.baseline.record["observations_sha256"],
            assignment_sha256=self.assignment_sha256,
        )
        return {
            "contributions.json": judgement.contributions,
            "inference.json": judgement.inference,
            "selected_skillbank.json": bank,
            "selected_skill.md": skill_markdown(bank),
            "proposal_ledger.jsonl": ledger,
        }
