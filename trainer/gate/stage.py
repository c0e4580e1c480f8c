"""What every gate does as one resumable stage: check, play, judge, publish.

Nothing is played before what is judged, the design and the bare run have been checked. Whatever is
on disk is used again, so that a gate that was stopped or killed ends in the same documents. They
are published in an order that ends with the manifest: a gate without a manifest has not ended.

``Gate`` is what all gates share, ``round.PoolGate`` what those of a round share. Specification:
gate-analysis.md §§4-8.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from trainer.canonical import fingerprint
from trainer.errors import IncompleteError, InputError
from trainer.files import write_json
from trainer.gate.artefacts import (
    gate_manifest,
    output_hashes,
)
from trainer.gate.assignment import Assignment
from trainer.gate.config import PlayConfig
from trainer.gate.folder import claim, finished_manifest, write_document
from trainer.gate.judgement import Judgement
from trainer.gate.pairing import Baseline
from trainer.gate.slots import Layout
from trainer.rollout.evaluate import Execution, choose_tasks
from trainer.rollout.policy import Policy
from trainer.rollout.providers import AssignedSkills
from trainer.shop.world import World

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Gate(ABC):
    """One gate of one checkpoint. Creating it reads and plays nothing."""

    config: PlayConfig
    world: World
    policy: Policy
    facts: Json = field(default_factory=dict)  # how the policy is run, e.g. its thread count

    manifest_name: ClassVar[str]
    manifest_schema: ClassVar[str]
    outputs: ClassVar[tuple[str, ...]]  # the files of ``documents``, in the order of writing

    @property
    @abstractmethod
    def subject(self) -> Json:
        """The hash of what is judged."""

    @property
    @abstractmethod
    def budget(self) -> int:
        """How many chunks may become active."""

    @cached_property
    @abstractmethod
    def layout(self) -> Layout:
        """What is randomised."""

    @property
    @abstractmethod
    def protocol(self) -> Json:
        """How the gate is done, as its manifest says it."""

    @cached_property
    @abstractmethod
    def assignments(self) -> tuple[Assignment, ...]:
        """Who sees what. Raises InputError when the effects would be confounded."""

    @cached_property
    @abstractmethod
    def assignment_file(self) -> dict[str, Any]:
        """``mask_assignments.json``."""

    @cached_property
    @abstractmethod
    def baseline(self) -> Baseline:
        """The bare run, checked against the masked plan."""

    @abstractmethod
    def play(self) -> dict[str, Any]:
        """Play what is not yet on disk and return the summary of the masked rollouts."""

    @abstractmethod
    def judge(self) -> Judgement:
        """Judge what was played. Raises IncompleteError or InputError when it cannot be used."""

    @abstractmethod
    def documents(self, judgement: Judgement) -> dict[str, Any]:
        """What the gate publishes, by file name."""

    @abstractmethod
    def settings_record(self) -> dict[str, Any]:
        """The manifest's ``config``."""

    @cached_property
    def tasks(self) -> tuple[int, ...]:
        """The tasks of the gate, in split order."""
        tasks = self.world.split(self.config.split)
        return choose_tasks(tasks, limit=self.config.tasks, sample_size=None, seed=self.config.seed)

    @property
    def assignment_sha256(self) -> str:
        """Identity of the design."""
        return str(self.assignment_file["assignment_sha256"])

    @property
    def execution(self) -> Execution:
        """How the rollouts are played."""
        return Execution(
            batch_size=self.config.batch_size, attempts=self.config.attempts, facts=self.facts
        )

    def skills(self, rows: Sequence[Assignment]) -> AssignedSkills:
        """The provider that shows each rollout its versions."""
        return AssignedSkills(
            [item.chunk for item in self.layout.interventions.values()],
            {row.key: row.included for row in rows},
            identity={
                "bank": dict(self.subject),
                "assignment": {"assignment_sha256": self.assignment_sha256},
            },
        )

    def run(self) -> dict[str, Any]:
        """Carry the gate out and return its manifest.

        Raises InputError before anything is played when an input cannot be used, StopRequested when
        asked to stop, and IncompleteError after writing the manifest when too little was observed
        or the observations cannot be used.
        """
        folder = self.config.output_dir
        claim(folder, self.identity(), self.manifest_name)
        ended = finished_manifest(folder, self.manifest_name, self.outputs)
        if ended is not None:
            return ended
        summary = self.play()
        try:
            judgement = self.judge()
        except (InputError, IncompleteError) as error:
            self._manifest("incomplete", summary, None, {"reason": str(error)})
            raise IncompleteError(str(error)) from error
        documents = self.documents(judgement)
        for name in self.outputs:
            write_document(folder / name, documents[name])
        return self._manifest("complete", summary, output_hashes(documents), judgement.extra)

    def require_coverage(self, complete: int, requested: int, what: str) -> None:
        """Raise IncompleteError when fewer observations are complete than the settings ask for."""
        if complete < self.config.min_coverage * requested:
            raise IncompleteError(
                f"{complete} of {requested} {what} are complete; "
                f"min_coverage asks for {self.config.min_coverage:.0%}"
            )

    def identity(self) -> dict[str, Any]:
        """What makes rollouts belong to this gate: changing any of it starts another."""
        return {
            "protocol": dict(self.protocol),
            "bare_baseline": dict(self.baseline.record),
            **self.subject,
            "assignment_sha256": self.assignment_sha256,
            "active_skill_budget": self.budget,
            "min_coverage": self.config.min_coverage,
        }

    def relative(self, path: Path) -> str:
        """A path as documents name it: from the round folder, so that a moved run stays itself."""
        return Path(os.path.relpath(path, self.config.output_dir.parent)).as_posix()

    def _manifest(
        self, status: str, summary: Json, outputs: Json | None, extra: Json
    ) -> dict[str, Any]:
        manifest = gate_manifest(
            schema=self.manifest_schema,
            status=status,
            config=self.settings_record(),
            protocol={"split": self.config.split, **self.protocol},
            inputs=self.inputs(),
            summary=summary,
            outputs=outputs,
            extra={"gate_fingerprint": fingerprint(self.identity()), **extra},
        )
        write_json(self.config.output_dir / self.manifest_name, manifest)
        return manifest

    def inputs(self) -> dict[str, Any]:
        """The manifest's ``input``."""
        plan = self.baseline.run.plan
        provenance = [trace["provenance"] for trace in self.baseline.run.traces.values()]
        return {
            **self.subject,
            "assignment_sha256": self.assignment_sha256,
            "task_ids": list(self.tasks),
            "model": plan["model"],
            "environment": plan["environment"],
            "observed_provenance": {
                section: distinct([each[section] for each in provenance])
                for section in ("model", "environment", "prompt", "runtime")
            },
            "bare_baseline": dict(self.baseline.record),
        }


def distinct(values: Sequence[Any]) -> list[Any]:
    """The different values, in order of first appearance."""
    return list({fingerprint(value): value for value in values}.values())
