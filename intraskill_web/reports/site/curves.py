"""The interactive training curve: one metric at a time, raw and trailing mean, round borders."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from intraskill_web.core.labels import word
from intraskill_web.monitoring.statistics import trailing_mean
from intraskill_web.reports.site.blocks import Plot
from intraskill_web.reports.site.inputs import Inputs
from intraskill_web.reports.site.words import METRICS
from trainer.analysis.schema import Analysis

WINDOW = 5
SCRIPTS = ("assets/plotly.min.js", "data/curves.js", "assets/curves.js")
CURVES = (
    "rollout/shopsim/success_rate",
    "rollout/shopsim/reward_mean",
    "rollout/shopsim/skill_free_group_rate",
    "rollout/shopsim/all_wrong_group_rate",
    "rollout/shopsim/zero_std_group_drop_rate",
    "rollout/shopsim/scored_rate",
)
Q = "rollout/shopsim/skill_free_group_rate"


def curves_plot(inputs: Inputs) -> Plot | None:
    """The figure; None before a step was made."""
    table = inputs.analysis.training
    names = [name for name in CURVES if name in table.columns]
    if not table.rows or not names:
        return None
    steps = [int(row[0] or 0) for row in table.rows]
    return Plot(
        identity="curves",
        title=_("Training by step"),
        selects=[("metric", _("Metric"), [(name, word(METRICS, name)) for name in names])],
        words={
            "raw": _("each step"),
            "mean": _("mean of five steps"),
            "round": _("round"),
            "step": _("Step"),
            "q": _("q, the planned share"),
        },
        slider=(min(steps), max(steps)),
        source=table.source,
        note=_("Thin: each step. Thick: mean of the last five steps. Dotted: a new round."),
    )


def curves_data(analysis: Analysis) -> dict[str, Any]:
    """What the figure draws, without words: they differ by language."""
    table = analysis.training
    place = {name: i for i, name in enumerate(table.columns)}
    if not table.rows:
        return {}
    data: dict[str, Any] = {
        "steps": [row[place["step"]] for row in table.rows],
        "rounds": [row[place["round"]] for row in table.rows],
        "q": analysis.rounds[0].q if analysis.rounds else None,
        "q_metric": Q,
        "metrics": {},
    }
    for name in CURVES:
        if name in place:
            values = [row[place[name]] for row in table.rows]
            means = trailing_mean([None if v is None else float(v) for v in values], WINDOW)
            smooth = [None if mean is None else round(mean, 6) for mean in means]
            data["metrics"][name] = {"raw": values, "mean": smooth}
    return data
