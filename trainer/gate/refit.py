"""A finished gate seen again: refitted and re-selected under another profile, budget or threshold.

Nothing is played and the original is never touched. ``contributions.json`` holds all that is
needed, so published gates can be refitted too. Under its own profile a gate comes out as it was, to
1e-9; under the other one,

* a published gate (one masked rollout a task) is judged by the standard rules from an analysis of
  covariance, R_i = alpha + C_i' beta + gamma (B_i - mean B) + e_i, alpha being the effect of any
  text;
* a standard gate is judged by the published rule from the first rollout of each task with a bare
one.

Specification: gate-analysis.md §§6, 7, 16.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from trainer.errors import InputError
from trainer.files import read_json
from trainer.gate.artefacts import contribution_row
from trainer.gate.regression import Array, Fit, least_squares
from trainer.gate.selection import Selection, select
from trainer.gate.slots import Intervention, Layout, Slot
from trainer.gate.standard.decision import Roles, Thresholds, decide
from trainer.gate.standard.estimate import Pairs, estimate
from trainer.gate.standard.judge import select as select_standard
from trainer.gate.standard.settings import StandardSettings
from trainer.gate.standard.shrinkage import shrink
from trainer.skills.types import Chunk

Profile = Literal["published", "standard"]
Json = Mapping[str, Any]
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class FinishedGate:
    """What a finished gate observed. ``rows`` is its observations table."""

    folder: Path
    profile: Profile
    layout: Layout
    rows: Sequence[Json]
    outcomes: tuple[str, ...]
    budget: int
    stored: Mapping[str, float]


def load_finished(folder: Path) -> FinishedGate:
    """Read a gate's ``contributions.json``. Raises InputError when it is missing or empty."""
    document = read_json(folder / "contributions.json")
    rows = document.get("observations_table")
    if not rows:
        raise InputError(
            "holds no observations",
            file=folder / "contributions.json",
            field="observations_table",
        )
    published = document["estimator"]["baseline"] == "same_task_bare_validation"
    return FinishedGate(
        folder=folder,
        profile="published" if published else "standard",
        layout=_layout(document["contributions"]),
        rows=rows,
        outcomes=(*sorted(rows[0]["reward_detail"]), "reward"),
        budget=document["active_skill_budget"],
        stored={row["intervention_id"]: row["coefficient"] for row in document["contributions"]},
    )


def _layout(rows: Sequence[Json]) -> Layout:
    """The layout as contributions tell it; texts are not among them."""
    versions: dict[int, list[Json]] = {}
    for row in rows:
        versions.setdefault(row["order"], []).append(row)
    slots = []
    for _, members in sorted(versions.items()):
        old = members[0]["intervention_id"] if members[0]["kind"] == "current" else None
        names = tuple(row["intervention_id"] for row in members)
        slots.append(Slot(members[0]["logical_chunk_id"], old, names))
    return Layout(
        tuple(slots),
        {
            row["intervention_id"]: Intervention(
                row["kind"],
                row["operation"],
                row["logical_chunk_id"],
                row["order"],
                Chunk(row["intervention_id"], row["intervention_id"]),
            )
            for row in rows
        },
    )


def refit(
    gate: FinishedGate,
    *,
    profile: Profile | None = None,
    budget: int | None = None,
    settings: StandardSettings | None = None,
) -> dict[str, Any]:
    """Estimates, errors and statuses under a profile (default: the gate's own)."""
    profile = profile or gate.profile
    fit = fit_published(gate) if profile == "published" else fit_standard(gate)
    at = len(gate.outcomes) - 1
    names = gate.layout.columns
    limit = gate.budget if budget is None else budget
    coefficients = dict(zip(names, fit.beta[:, at].tolist(), strict=True))
    effects = coefficients
    decisions: Mapping[str, str] = {}
    if profile == "published":
        selection = select(gate.layout, coefficients, limit)
    else:
        settings = settings or StandardSettings()
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
    if settings is not None:
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
        return estimate(pairs(gate), minimum_adjusting=StandardSettings().minimum_adjusting)
    masks = np.array([row["mask"] for row in gate.rows], dtype=np.float64)
    bare = scores(gate, gate.rows, bare=True)[:, -1]
    k = masks.shape[1]
    adjusted = np.column_stack([masks, np.ones(len(masks)), bare - bare.mean()])
    fit = least_squares(adjusted, scores(gate, gate.rows))
    return Fit(
        beta=fit.beta[:k],
        covariance=fit.covariance[:, :k, :k],
        residuals=fit.residuals,
        leverage=fit.leverage,
        degrees_of_freedom=fit.degrees_of_freedom,
    )


def scores(gate: FinishedGate, rows: Sequence[Json], *, bare: bool = False) -> Array:
    """Outcomes (n, m) of the masked or the bare rollouts of rows."""
    prefix = "bare_" if bare else ""
    return np.array(
        [
            [
                row[f"{prefix}reward"] if name == "reward" else row[f"{prefix}reward_detail"][name]
                for name in gate.outcomes
            ]
            for row in rows
        ],
        dtype=np.float64,
    )


def pairs(gate: FinishedGate) -> Pairs:
    """The pairs of a standard gate's table."""
    first = [row for row in gate.rows if row["sample_id"] == 0]
    second = {row["task_id"]: row for row in gate.rows if row["sample_id"] == 1}
    both = [(row, second[row["task_id"]]) for row in first]
    bare = np.full((len(both), len(gate.outcomes)), np.nan)
    known = [i for i, (row, _) in enumerate(both) if row["bare_reward"] is not None]
    if known:
        bare[known] = scores(gate, [both[i][0] for i in known], bare=True)
    return Pairs(
        task_ids=tuple(row["task_id"] for row, _ in both),
        columns=gate.layout.columns,
        outcomes=gate.outcomes,
        shown=np.array([[row["mask"] for row in pair] for pair in both], dtype=np.float64),
        scores=np.stack([scores(gate, [pair[s] for pair in both]) for s in (0, 1)], axis=1),
        bare=bare,
    )


def difference_sd(gate: FinishedGate) -> float:
    """SD of a task's difference in reward that the chunks do not explain: what planning needs."""
    fit = fit_published(gate) if gate.profile == "published" else fit_standard(gate)
    return float(np.sqrt(np.sum(fit.residuals[:, -1] ** 2) / fit.degrees_of_freedom))
