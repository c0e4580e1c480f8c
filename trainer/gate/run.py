"""A gate as one resumable stage: plan, mask, play, pair, judge, publish.

Nothing is played before the pool, the design and the bare run have been checked. Whatever is on
disk is used again, so that a gate that was stopped or killed ends in the same documents. They are
published in an order that ends with the manifest: a gate without a manifest has not ended.
Specification: gate-analysis.md §§4-9.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from trainer.canonical import fingerprint
from trainer.errors import IncompleteError, InputError
from trainer.files import read_json, write_json, write_jsonl, write_text
from trainer.gate import published
from trainer.gate.artefacts import (
    gate_manifest,
    output_hashes,
    selected_bank,
    skill_markdown,
    without_time,
)
from trainer.gate.assignment import (
    Assignment,
    assignment_document,
    design_matrix,
    draw_assignments,
)
from trainer.gate.config import GateConfig
from trainer.gate.judgement import Judgement
from trainer.gate.ledger import attach_results, load_ledger
from trainer.gate.pairing import Baseline, load_baseline, pair
from trainer.gate.pool import CandidatePool, load_pool
from trainer.gate.regression import check_design
from trainer.gate.runs import load_run
from trainer.gate.slots import Layout, build_layout
from trainer.rollout.evaluate import (
    Evaluation,
    EvaluationPlan,
    Execution,
    build_plan,
    choose_tasks,
    open_manifest,
)
from trainer.rollout.policy import Policy
from trainer.rollout.providers import AssignedSkills
from trainer.shop.world import World

Json = Mapping[str, Any]
MANIFEST = "online_gate_manifest.json"


@dataclass(frozen=True)
class Gate:
    """One gate of one checkpoint. Creating it reads the pool and draws the masks, no more."""

    config: GateConfig
    world: World
    policy: Policy
    facts: Json = field(default_factory=dict)  # how the policy is run, e.g. its thread count

    @cached_property
    def pool(self) -> CandidatePool:
        """The round's proposals."""
        return load_pool(self.config.candidate_pool)

    @cached_property
    def layout(self) -> Layout:
        """What is randomised."""
        return build_layout(self.pool)

    @cached_property
    def assignments(self) -> tuple[Assignment, ...]:
        """Who sees what. Raises InputError when the effects would be confounded."""
        tasks = choose_tasks(
            self.world.split(self.config.split),
            limit=self.config.tasks,
            sample_size=None,
            seed=self.config.seed,
        )
        rows = draw_assignments(
            self.layout,
            task_ids=tasks,
            split=self.config.split,
            experiment_seed=self.config.seed,
            mask_seed=self.config.mask_seed,
        )
        check_design(design_matrix(rows, self.layout.columns), self.layout.columns)
        return rows

    @cached_property
    def assignment_file(self) -> dict[str, Any]:
        """``mask_assignments.json``."""
        return assignment_document(
            self.layout,
            self.assignments,
            mask_seed=self.config.mask_seed,
            pool_sha256=self.pool.pool_sha256,
        )

    @property
    def assignment_sha256(self) -> str:
        """Identity of the design."""
        return str(self.assignment_file["assignment_sha256"])

    def skills(self) -> AssignedSkills:
        """The provider that shows each rollout its versions."""
        return AssignedSkills(
            [item.chunk for item in self.layout.interventions.values()],
            {row.key: row.included for row in self.assignments},
            identity={
                "bank": {"pool_sha256": self.pool.pool_sha256},
                "assignment": {"assignment_sha256": self.assignment_sha256},
            },
        )

    def plan(self, extra: Json | None = None) -> EvaluationPlan:
        """The masked evaluation."""
        return build_plan(
            self.world,
            self.policy,
            self.skills(),
            split=self.config.split,
            task_ids=[row.task_id for row in self.assignments],
            seed=self.config.seed,
            max_turns=self.config.max_turns,
            extra=extra,
        )

    @cached_property
    def baseline(self) -> Baseline:
        """The bare run, checked against the masked plan."""
        return load_baseline(
            self.config.bare_run,
            self.plan().document,
            name=self._relative(self.config.bare_run),
        )

    def run(self) -> dict[str, Any]:
        """Carry the gate out and return its manifest.

        Raises InputError before anything is played when an input cannot be used, StopRequested when
        asked to stop, and IncompleteError after writing the manifest when too little was observed
        or the observations cannot be used.
        """
        folder = self.config.output_dir
        plan = self.plan({"online_validation_gate": self._identity()})
        execution = Execution(
            batch_size=self.config.batch_size, attempts=self.config.attempts, facts=self.facts
        )
        open_manifest(folder, plan, execution)
        finished = self._finished(plan)
        if finished is not None:
            return finished
        write_json(folder / "mask_assignments.json", self.assignment_file)
        evaluation = Evaluation(self.world, self.policy, self.skills(), plan, execution)
        summary = evaluation.run(folder)
        try:
            judgement = self._judge(folder)
        except InputError as error:
            raise self._incomplete(summary, str(error)) from error
        except IncompleteError as error:
            raise self._incomplete(summary, str(error)) from error
        return self._publish(summary, judgement)

    def _judge(self, folder: Path) -> Judgement:
        observations, dropped = pair(self.assignments, load_run(folder), self.baseline)
        coverage = len(observations) / len(self.assignments)
        if coverage < self.config.min_coverage:
            raise IncompleteError(
                f"{len(observations)} of {len(self.assignments)} pairs are complete; "
                f"min_coverage asks for {self.config.min_coverage:.0%}"
            )
        return published.judge(
            self.layout,
            observations,
            dropped=dropped,
            budget=self.config.active_skill_budget,
            pool_sha256=self.pool.pool_sha256,
            assignment_sha256=self.assignment_sha256,
            bare_baseline=self.baseline.record,
        )

    def _publish(self, summary: Json, judgement: Judgement) -> dict[str, Any]:
        folder = self.config.output_dir
        bank = selected_bank(
            self.layout,
            judgement.selection,
            self.pool,
            assignment_sha256=self.assignment_sha256,
            budget=self.config.active_skill_budget,
            bare_baseline=self.baseline.record,
            estimator=judgement.estimator,
        )
        ledger = attach_results(
            load_ledger(self.config.candidate_pool.parent / "proposal_ledger.jsonl"),
            self.pool,
            judgement.selection,
            evaluation_checkpoint=self.baseline.record["checkpoint_id"],
            estimator=judgement.estimator["name"],
            bare_observations_sha256=self.baseline.record["observations_sha256"],
            assignment_sha256=self.assignment_sha256,
        )
        write_json(folder / "contributions.json", judgement.contributions)
        write_json(folder / "inference.json", judgement.inference)
        write_json(folder / "selected_skillbank.json", bank)
        write_text(folder / "selected_skill.md", skill_markdown(bank))
        write_jsonl(folder / "proposal_ledger.jsonl", ledger)
        outputs = output_hashes(judgement.contributions, judgement.inference, bank, ledger)
        return self._manifest("complete", summary, outputs, judgement.extra)

    def _incomplete(self, summary: Json, reason: str) -> IncompleteError:
        self._manifest("incomplete", summary, None, {"reason": reason})
        return IncompleteError(reason)

    def _manifest(
        self, status: str, summary: Json, outputs: Json | None, extra: Json
    ) -> dict[str, Any]:
        manifest = gate_manifest(
            status=status,
            config={
                "name": self.config.name,
                "output_dir": self._relative(self.config.output_dir),
                "candidate_pool_path": self._relative(self.config.candidate_pool),
                "bare_run_dir": self._relative(self.config.bare_run),
                "mask_seed": self.config.mask_seed,
                "active_skill_budget": self.config.active_skill_budget,
                "profile": self.config.profile,
                "min_coverage": self.config.min_coverage,
            },
            protocol={"split": self.config.split, **published.PROTOCOL},
            inputs=self._inputs(),
            summary=summary,
            outputs=outputs,
            extra=extra,
        )
        write_json(self.config.output_dir / MANIFEST, manifest)
        return manifest

    def _identity(self) -> dict[str, Any]:
        """What makes a masked run belong to this gate: changing any of it starts another."""
        return {
            "profile": self.config.profile,
            "estimator": published.ESTIMATOR["name"],
            "bare_baseline": self.baseline.record,
            "pool_sha256": self.pool.pool_sha256,
            "assignment_sha256": self.assignment_sha256,
            "active_skill_budget": self.config.active_skill_budget,
            "min_coverage": self.config.min_coverage,
            "rewrite_treatment": published.PROTOCOL["rewrite_treatment"],
        }

    def _inputs(self) -> dict[str, Any]:
        document = self.plan().document
        provenance = [trace["provenance"] for trace in self.baseline.run.traces.values()]
        return {
            "proposal_checkpoint": self.pool.proposal_checkpoint,
            "pool_sha256": self.pool.pool_sha256,
            "assignment_sha256": self.assignment_sha256,
            "task_ids": [row.task_id for row in self.assignments],
            "model": document["model"],
            "environment": document["environment"],
            "observed_provenance": {
                section: distinct([each[section] for each in provenance])
                for section in ("model", "environment", "prompt", "runtime")
            },
            "bare_baseline": dict(self.baseline.record),
        }

    def _finished(self, plan: EvaluationPlan) -> dict[str, Any] | None:
        """The manifest of this very gate if it has ended and its outputs are still whole."""
        folder = self.config.output_dir
        if not (folder / MANIFEST).exists():
            return None
        manifest: dict[str, Any] = read_json(folder / MANIFEST)
        names = ("contributions", "inference", "selected_skillbank")
        files = {name: folder / f"{name}.json" for name in names}
        if manifest["status"] != "complete" or not all(file.exists() for file in files.values()):
            return None
        hashes = {
            f"{name}_sha256": fingerprint(without_time(read_json(file)))
            for name, file in files.items()
        }
        return manifest if hashes.items() <= manifest["output"].items() else None

    def _relative(self, path: Path) -> str:
        """A path as documents name it: from the round folder, so that a moved run stays itself."""
        return Path(os.path.relpath(path, self.config.output_dir.parent)).as_posix()


def distinct(values: Sequence[Any]) -> list[Any]:
    """The different values, in order of first appearance."""
    return list({fingerprint(value): value for value in values}.values())
