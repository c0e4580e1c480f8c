"""Everything a report is made from, read once and used for every language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count

from intraskill_web.experiments.models import CheckpointScore, Experiment
from intraskill_web.gates.models import GateRun
from intraskill_web.skills.models import SkillVersion
from trainer.analysis import Analysis, Material


@dataclass(slots=True)
class Inputs:
    """One run: its analysis, the rows the dashboard's charts draw from, library and samples."""

    experiment: Experiment
    material: Material
    title: str
    library: Sequence[Any] = ()
    samples: Sequence[Any] = ()
    downloads: Sequence[tuple[str, int]] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    gates: Sequence[GateRun] = ()
    skill_versions: Sequence[SkillVersion] = ()
    scores: Sequence[CheckpointScore] = ()

    @property
    def analysis(self) -> Analysis:
        return self.material.analysis

    @classmethod
    def of(cls, experiment: Experiment, material: Material, **more: Any) -> Inputs:
        """The inputs with the experiment's rows."""
        gates = (
            GateRun.objects.filter(round__experiment=experiment)
            .select_related("round")
            .prefetch_related("contributions")
            .order_by("round__number", "pk")
        )
        newest = {gate.round.number: gate for gate in gates}
        return cls(
            experiment=experiment,
            material=material,
            title=str(experiment.config.get("title") or experiment.name),
            gates=list(newest.values()),
            skill_versions=list(
                SkillVersion.objects.filter(experiment=experiment)
                .annotate(size=Count("entries"))
                .order_by("number")
            ),
            scores=list(
                CheckpointScore.objects.filter(experiment=experiment).select_related("round")
            ),
            **more,
        )
