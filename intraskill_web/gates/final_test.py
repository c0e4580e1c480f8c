"""The test of an experiment: every arm's figures, and the paired differences between arms.

Arms are read from the summaries of their evaluations. Differences are those an import has computed
from task outcomes, else they are computed once from the episodes and kept beside the run
(``derived/comparisons.json``), by the published convention of the bootstrap (specification:
gate-analysis.md §13).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from django.utils.translation import gettext as _

from intraskill_web.core.tables import Column, Table
from intraskill_web.episodes.models import Episode
from intraskill_web.experiments.checkpoints import score_episodes
from intraskill_web.experiments.gaps import COMPARISONS
from intraskill_web.experiments.models import CheckpointScore, Experiment
from trainer.compare.outcomes import Arm
from trainer.compare.report import compare
from trainer.errors import InputError
from trainer.files import read_json, write_json

COUNTED = ("n", "reward", "success")  # figures of exactly the episodes of an arm


@dataclass(frozen=True, slots=True)
class FinalTest:
    """Two tables."""

    arms: Table
    differences: Table
    comparisons: Sequence[dict[str, Any]]

    @property
    def heads(self) -> list[tuple[str, str]]:
        """Step and arm of each column of ``lines``."""
        step, arm = self.arms.columns[:2]
        return [(step.show(row["step"]), arm.show(row["arm"])) for row in self.arms.rows]

    @property
    def lines(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """The arms side by side: a figure a line, with what opens its episodes."""
        return [
            (
                column.label,
                [
                    (column.show(row.get(column.key)), row["_href"] if opens else "")
                    for row in self.arms.rows
                ],
            )
            for column, opens in ((c, c.key in COUNTED) for c in self.arms.columns[2:])
        ]

    def data(self) -> dict[str, Any]:
        """The JSON twin, with the whole documents of the comparisons."""
        return {
            "arms": self.arms.data(),
            "differences": self.differences.data(),
            "comparisons": list(self.comparisons),
        }


def build(experiment: Experiment) -> FinalTest:
    """The tables of an experiment; empty before its test."""
    scores = list(
        CheckpointScore.objects.filter(experiment=experiment, split="test")
        .select_related("round")
        .order_by("step", "arm")
    )
    documents = _comparisons(experiment, scores)
    return FinalTest(_arms(experiment, scores), _differences(documents), documents)


def _comparisons(experiment: Experiment, scores: Sequence[CheckpointScore]) -> list[dict[str, Any]]:
    """One document a tested step, or those an import has made. Another test makes them anew."""
    file = experiment.folder / COMPARISONS
    rounds = {score.step: score.round_id for score in scores}
    try:
        known = list(read_json(file))
    except InputError:
        known = []
    if known and (experiment.imported or [one.get("step") for one in known] == [*rounds]):
        return known
    documents = [
        {"step": step} | document
        for step, round_id in rounds.items()
        if (document := _from_episodes(experiment, round_id))
    ]
    if documents:
        write_json(file, documents)
    return documents


def _from_episodes(experiment: Experiment, round_id: int) -> dict[str, Any]:
    """Full minus bare of a round's checkpoint, on the tasks that both arms scored."""
    arms: dict[str, dict[int, tuple[float, float]]] = {"bare": {}, "full": {}}
    rows = Episode.objects.filter(
        experiment=experiment, round=round_id, purpose="test", scored=True
    ).values_list("arm", "task_id", "reward", "success")
    for arm, task, reward, success in rows:
        if arm in arms and reward is not None:
            arms[arm][task] = (reward, float(bool(success)))
    shared = tuple(sorted(arms["bare"].keys() & arms["full"].keys()))
    if len(shared) < 2:
        return {}
    made = [
        Arm(
            name,
            shared,
            {
                metric: np.array([values[task][place] for task in shared])
                for place, metric in enumerate(("reward", "r_success"))
            },
        )
        for name, values in arms.items()
    ]
    return dict(compare(*made))


ARM_COLUMNS = (
    ("reward", ("primary", "reward_mean")),
    ("sem", ("primary", "reward_sem")),
    ("success", ("primary", "success_rate")),
    ("steps", ("behavior", "steps_mean")),
    ("model_steps", ("behavior", "model_steps")),
    ("protocol_errors", ("behavior", "protocol_errors")),
    ("policy_failures", ("behavior", "policy_failures")),
    ("invalid_actions", ("behavior", "invalid_actions")),
    ("actions", ("behavior", "total_actions")),
    ("completion_tokens", ("cost", "tokens", "completion_tokens")),
    ("prompt_tokens", ("cost", "tokens", "prompt_tokens")),
)


def _arms(experiment: Experiment, scores: Sequence[CheckpointScore]) -> Table:
    rows = []
    for score in scores:
        summary = _summary(experiment.folder / score.path)
        row: dict[str, Any] = {"step": score.step, "arm": score.arm, "n": score.n}
        row["_href"] = score_episodes(experiment.name, score.round.number, score)
        for key, path in ARM_COLUMNS:
            row[key] = _at(summary, path)
        row |= {"reward": score.reward, "success": score.success}
        row |= {k: v for k, v in (summary.get("reward_components") or {}).items() if k in PARTS}
        rows.append(row)
    columns = [
        Column("step", _("Step"), "count"),
        Column("arm", _("Arm"), "arms"),
        Column("n", _("Tasks"), "count"),
        Column("reward", _("Reward"), "rate"),
        Column("sem", _("SEM"), "rate"),
        Column("success", _("Success"), "rate"),
        Column("steps", _("Steps a task"), "rate"),
        Column("model_steps", _("Model steps"), "count"),
        Column("protocol_errors", _("Protocol errors"), "count"),
        Column("policy_failures", _("Truncated turns"), "count"),
        Column("invalid_actions", _("Invalid actions"), "count"),
        Column("actions", _("Actions"), "count"),
        Column("completion_tokens", _("Completion tokens"), "count"),
        Column("prompt_tokens", _("Prompt tokens"), "count"),
        *(Column(part, part, "rate") for part in PARTS),
    ]
    return Table("test", columns, rows)


PARTS = ("r_att", "r_loose", "r_option", "r_price", "r_type")


def _summary(folder: Path) -> dict[str, Any]:
    try:
        return dict(read_json(folder / "summary.json"))
    except InputError:
        return {}


def _at(value: Any, path: Sequence[str]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _differences(documents: Sequence[dict[str, Any]]) -> Table:
    columns = [
        *([Column("step", _("Step"), "count")] if any("step" in one for one in documents) else []),
        Column("contrast", _("Contrast"), "arms"),
        Column("metric", _("Metric"), "mono"),
        Column("difference", _("Difference"), "effect"),
        Column("low", _("From"), "effect"),
        Column("high", _("To"), "effect"),
        Column("gained", _("Fail → success"), "count"),
        Column("lost", _("Success → fail"), "count"),
        Column("mcnemar", _("McNemar p"), "p"),
        Column("detectable", _("Smallest detectable"), "rate"),
    ]
    rows = []
    for document in documents:
        for metric, found in document["metrics"].items():
            success = metric == "r_success"
            rows.append(
                {
                    "step": document.get("step"),
                    "contrast": f"{document['b']} \u2212 {document['a']}",
                    "metric": metric,
                    "difference": found["difference"],
                    "low": found["interval"][0],
                    "high": found["interval"][1],
                    "gained": document["transitions"]["failure_to_success"] if success else None,
                    "lost": document["transitions"]["success_to_failure"] if success else None,
                    "mcnemar": document["tests"]["mcnemar"]["exact"] if success else None,
                    "detectable": found["detectable_difference"],
                }
            )
    return Table("differences", columns, rows)
