"""A finished gate seen again: refitted and re-selected under another profile, budget or threshold.

Nothing is played and the original is never touched. ``contributions.json`` holds all that is
needed, so published gates can be refitted too. Under its own profile a gate comes out as it was, to
1e-9 (a gate in several looks is judged as one look at all its data); under the other one,

* a published gate (one masked rollout a task) is judged by the standard rules from an analysis of
  covariance, R_i = alpha + C_i' beta + gamma (B_i - mean B) + e_i, alpha being the effect of any
  text;
* a standard gate is judged by the published rule from the first rollout of each task with a bare
  one.

Specification: gate-analysis.md §§6, 7, 16.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trainer.config import GateProfile
from trainer.errors import InputError
from trainer.gate.artefacts import contribution_row
from trainer.gate.finished import FinishedGate, load_finished, pairs, scores
from trainer.gate.regression import Fit, least_squares
from trainer.gate.selection import Selection, select
from trainer.gate.standard.decision import Roles, Thresholds, decide
from trainer.gate.standard.estimate import estimate
from trainer.gate.standard.judge import select as select_standard
from trainer.gate.standard.settings import StandardSettings
from trainer.gate.standard.shrinkage import shrink
from trainer.reading import Node

__all__ = ["FinishedGate", "load_finished", "pairs", "refit", "scores"]
TOLERANCE = 1e-9


def refit(
    gate: FinishedGate,
    *,
    profile: GateProfile | None = None,
    budget: int | None = None,
    settings: StandardSettings | None = None,
) -> dict[str, Any]:
    """Estimates, errors and statuses under a profile, a budget and thresholds.

    What is not given is the gate's own. Raises InputError when the observations cannot tell the
    effects apart.
    """
    profile = profile or gate.profile
    settings = settings or gate.settings
    fit = fit_published(gate) if profile == "published" else fit_standard(gate)
    at = len(gate.outcomes) - 1
    names = gate.layout.columns
    limit = gate.budget if budget is None else Node(budget, None, "budget").integer(least=1)
    coefficients = dict(zip(names, fit.beta[:, at].tolist(), strict=True))
    effects = coefficients
    decisions: Mapping[str, str] = {}
    if profile == "published":
        selection = select(gate.layout, coefficients, limit)
    else:
        shrunk = shrink(fit.beta[:, at], fit.standard_error[:, at])
        effects = dict(zip(names, shrunk.mean.tolist(), strict=True))
        limits = Thresholds.of(settings, fit.degrees_of_freedom)
        found = decide(Roles.of(gate.layout), fit.beta[:, at], fit.covariance[at], limits)
        named = found.named(gate.layout)
        selection = select_standard(gate.layout, coefficients, effects, named, limit)
        decisions = named
    report: dict[str, Any] = {
        "status": "complete",
        "folder": str(gate.folder),
        "profile": profile,
        "original_profile": gate.profile,
        "observations": len(fit.residuals),
        "active_skill_budget": limit,
        "selected_intervention_ids": list(selection.selected),
        "contributions": _rows(gate, fit, selection, effects, decisions),
    }
    if profile == "standard":
        report["settings"] = settings.model_dump()
    if profile == gate.profile:
        report["largest_difference"] = max(abs(coefficients[n] - gate.stored[n]) for n in names)
    return report


def _rows(
    gate: FinishedGate,
    fit: Fit,
    selection: Selection,
    effects: Mapping[str, float],
    decisions: Mapping[str, str],
) -> list[dict[str, Any]]:
    at = len(gate.outcomes) - 1
    low, high = fit.interval()
    names = gate.layout.columns
    estimated = {
        outcome: {"coefficients": dict(zip(names, fit.beta[:, m].tolist(), strict=True))}
        for m, outcome in enumerate(gate.outcomes)
    }
    rows = []
    for j, name in enumerate(names):
        row = contribution_row(gate.layout, selection, name, estimated)
        row |= {
            "se": float(fit.standard_error[j, at]),
            "ci95": [float(low[j, at]), float(high[j, at])],
            "effect": effects[name],
            "original_coefficient": gate.stored[name],
            "original_status": gate.statuses[name],
        }
        rows.append(row | ({"decision": decisions[name]} if decisions else {}))
    return rows


def fit_published(gate: FinishedGate) -> Fit:
    """Masked minus bare on the masks of one rollout a task, no intercept."""
    rows = [row for row in gate.rows if row["sample_id"] == 0 and row["bare_reward"] is not None]
    if not rows:
        raise InputError("no task has a bare rollout", file=gate.folder / "contributions.json")
    masks = np.array([row["mask"] for row in rows], dtype=np.float64)
    return least_squares(masks, scores(gate, rows) - scores(gate, rows, bare=True))


def fit_standard(gate: FinishedGate) -> Fit:
    """Differences inside pairs where there are pairs, else an analysis of covariance."""
    if gate.profile == "standard":
        return estimate(pairs(gate), minimum_adjusting=gate.settings.minimum_adjusting)
    masks = np.array([row["mask"] for row in gate.rows], dtype=np.float64)
    bare = scores(gate, gate.rows, bare=True)[:, -1]
    adjusting = [np.ones(len(masks))]
    if np.ptp(bare) > 0:
        adjusting.append(bare - bare.mean())
    X = np.column_stack([masks, *adjusting])
    return least_squares(X, scores(gate, gate.rows)).first(masks.shape[1])


def difference_sd(gate: FinishedGate) -> float:
    """SD of a task's difference in reward that the chunks do not explain: what planning needs."""
    fit = fit_published(gate) if gate.profile == "published" else fit_standard(gate)
    return float(np.sqrt(np.sum(fit.residuals[:, -1] ** 2) / fit.degrees_of_freedom))
