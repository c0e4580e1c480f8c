"""The standard gate as a stage: pairs of rollouts, in one or several looks, with confirmation.

With one look the masked rollouts lie in the gate's folder, as in a published gate. With several,
each look is an evaluation of its own under ``looks/``, and the gate's own files are put together
from them at the end. A confirmation lies under ``confirm/``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from trainer.files import write_json
from trainer.gate.assignment import Assignment, assignment_document, design_matrix
from trainer.gate.judgement import Json, Judgement
from trainer.gate.pairing import Baseline, load_baseline
from trainer.gate.regression import check_design
from trainer.gate.round import PoolGate
from trainer.gate.standard import judge as standard
from trainer.gate.standard.analysis import analyse
from trainer.gate.standard.confirm import confirm, confirmation_tasks
from trainer.gate.standard.decision import Decision, nothing_changes
from trainer.gate.standard.design import SCHEMA, deal
from trainer.gate.standard.rollouts import put_together, read_pairs, with_shared_noise
from trainer.gate.standard.sequential import (
    Look,
    batches,
    decide_look,
    fixed_states,
    spent_share,
)
from trainer.gate.standard.settings import StandardSettings
from trainer.progress import Progress
from trainer.rollout.evaluate import Evaluation, EvaluationPlan, build_plan, open_manifest
from trainer.rollout.providers import BankSkills, NoSkills, SkillAssignment
from trainer.rollout.summary import summarise
from trainer.skills.bank import SkillBank, parse_bank


class StandardGate(PoolGate):
    """Two complementary masked rollouts a task; bare ones wherever the bare run has them."""

    @property
    def settings(self) -> StandardSettings:
        """The profile's thresholds."""
        return self.config.standard

    @property
    def label(self) -> str:
        """Seeds every random choice of the gate."""
        return f"{self.config.mask_seed}:{self.pool.round_id}"

    @property
    def protocol(self) -> Json:
        return {**standard.PROTOCOL, "settings": self.settings.model_dump()}

    @cached_property
    def confirmed_on(self) -> tuple[int, ...]:
        """Tasks set aside for the confirmation."""
        return confirmation_tasks(
            self.tasks,
            self.settings.confirm_tasks,
            round_id=self.pool.round_id,
            label=str(self.config.mask_seed),
        )

    @cached_property
    def batches(self) -> list[tuple[int, ...]]:
        """The tasks of each look."""
        aside = set(self.confirmed_on)
        chosen = [task for task in self.tasks if task not in aside]
        return batches(chosen, self.settings.looks, self.label)

    @cached_property
    def assignments(self) -> tuple[Assignment, ...]:
        """The rows of the first look; with one look, of the whole gate."""
        return self._deal(0, {})

    def _deal(self, look: int, fixed: Mapping[str, str | None]) -> tuple[Assignment, ...]:
        rows = deal(
            self.layout,
            task_ids=self.batches[look],
            split=self.config.split,
            experiment_seed=self.config.seed,
            mask_seed=self.config.mask_seed,
            round_id=self.pool.round_id,
            look=look,
            fixed=fixed,
        )
        if look == 0:
            masks = design_matrix(rows, self.layout.columns)
            check_design(masks[::2] - masks[1::2], self.layout.columns)
        return rows

    @cached_property
    def assignment_file(self) -> dict[str, Any]:
        return self._assignment_document(self.assignments)

    def _assignment_document(self, rows: Sequence[Assignment]) -> dict[str, Any]:
        return assignment_document(
            self.layout,
            rows,
            mask_seed=self.config.mask_seed,
            pool_sha256=self.pool.pool_sha256,
            schema=SCHEMA,
            extra={"round_id": self.pool.round_id},
        )

    @cached_property
    def baseline(self) -> Baseline:
        plan = self._plan(self.tasks, self.skills(self.assignments))
        return load_baseline(
            self.config.bare_run,
            plan.document,
            name=self.relative(self.config.bare_run),
            same_tasks=False,
        )

    def _plan(
        self, tasks: Sequence[int], skills: SkillAssignment, *, repeats: int = 2, **extra: Json
    ) -> EvaluationPlan:
        plan = build_plan(
            self.world,
            self.policy,
            skills,
            split=self.config.split,
            task_ids=tasks,
            seed=self.config.seed,
            repeats=repeats,
            max_turns=self.config.max_turns,
            extra=extra,
        )
        return with_shared_noise(plan, self.config.seed) if self.settings.shared_noise else plan

    @cached_property
    def progress(self) -> Progress:
        """Counts the rollouts of all looks and of the confirmation."""
        total = self.config.rollouts(len(self.tasks))
        return Progress(self.config.output_dir / "progress.json", unit="episode", total=total)

    def play(self) -> dict[str, Any]:
        folder = self.config.output_dir
        if self.settings.looks == 1:
            self._play_look(folder, 0, self.assignments)
            return summarise(folder)
        played = self.played_looks
        write_json(folder / "mask_assignments.json", self.assignment_file)
        return put_together(self._look_folders(len(played)), folder, self.execution)

    def _play_look(self, folder: Path, look: int, rows: Sequence[Assignment]) -> None:
        skills = self.skills(rows)
        plan = self._plan(
            self.batches[look],
            skills,
            online_validation_gate={**self.identity(), "look": look + 1},
        )
        open_manifest(folder, plan, self.execution)
        write_json(folder / "mask_assignments.json", self._assignment_document(rows))
        evaluation = Evaluation(self.world, self.policy, skills, plan, self.execution)
        evaluation.run(folder, self.progress.share())

    @cached_property
    def played_looks(self) -> list[tuple[Look, tuple[Assignment, ...]]]:
        """Each look and its rows: played, once, until all slots are decided or no task is left."""
        folder = self.config.output_dir / "looks"
        played: list[tuple[Look, tuple[Assignment, ...]]] = []
        decided: dict[str, Decision] = {}
        rows = self.assignments
        while True:
            number = len(played)
            place = folder / f"look-{number + 1:02d}"
            self._play_look(place, number, rows)
            before = tuple(row for _, earlier in played for row in earlier)
            folders = [*self._look_folders(number), place]
            pairs, _ = read_pairs((*before, *rows), self.layout.columns, folders, self.baseline)
            share = spent_share(number + 1, self.settings.looks)
            analysis = analyse(self.layout, pairs, self.settings, spent=share)
            if number + 1 < self.settings.looks:
                decided = decide_look(self.layout, analysis, self.settings, decided, share=share)
            else:
                decided = {**analysis.decisions.named(self.layout), **decided}
            look = Look(number + 1, len(rows) // 2, share, analysis, dict(decided))
            played.append((look, rows))
            if len(decided) == len(self.layout.columns):
                return played
            rows = self._deal(number + 1, fixed_states(self.layout, decided))

    def _look_folders(self, count: int) -> list[Path]:
        folder = self.config.output_dir
        if self.settings.looks == 1:
            return [folder]
        return [folder / "looks" / f"look-{number + 1:02d}" for number in range(count)]

    def judge(self) -> Judgement:
        if self.settings.looks == 1:
            rows, decided, looks = self.assignments, None, []
        else:
            rows = tuple(row for _, each in self.played_looks for row in each)
            decided = self.played_looks[-1][0].decided
            looks = [look.to_record() for look, _ in self.played_looks]
        folders = self._look_folders(len(looks))
        pairs, dropped = read_pairs(rows, self.layout.columns, folders, self.baseline)
        self.require_coverage(len(pairs.task_ids), len(rows) // 2, "pairs")
        judged = partial(
            standard.judge,
            self.layout,
            rows,
            pairs,
            self.settings,
            dropped=dropped,
            budget=self.budget,
            label=self.label,
            pool_sha256=self.pool.pool_sha256,
            assignment_sha256=self.assignment_sha256,
            bare_baseline=self.baseline.record,
        )
        judgement = judged(decided=decided)
        extra: dict[str, Any] = {**judgement.extra, "looks": looks}
        if self.confirmed_on:
            report = self._confirm(judgement)
            extra["confirmation"] = report
            if report["verdict"] == "refuted":
                judgement = judged(decided=nothing_changes(self.layout))
        self.progress.finish()
        return replace(judgement, extra=extra)

    def _confirm(self, judgement: Judgement) -> dict[str, Any]:
        document = self.next_bank(judgement)
        old = SkillBank(self.pool.current, self.pool.current_skillbank_sha256)
        arms: dict[str, SkillAssignment] = {
            "new": BankSkills(parse_bank(document)),
            "old": BankSkills(old),
            "bare": NoSkills(),
        }

        def play(arm: str, folder: Path) -> None:
            plan = self._plan(self.confirmed_on, arms[arm], repeats=1)
            evaluation = Evaluation(self.world, self.policy, arms[arm], plan, self.execution)
            evaluation.run(folder, self.progress.share())

        return confirm(self.config.output_dir / "confirm", play)
