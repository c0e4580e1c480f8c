"""The published profile from observations to verdicts: paired differences, least squares, positive.

Specification: gate-analysis.md §§5-8.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainer.gate.artefacts import contributions_document, estimates, inference_document
from trainer.gate.assignment import design_matrix
from trainer.gate.judgement import Json, Judgement
from trainer.gate.pairing import Observation
from trainer.gate.regression import least_squares
from trainer.gate.selection import select
from trainer.gate.slots import Layout

ESTIMATOR: Json = {
    "name": "paired_delta_ols_main_effects_no_intercept",
    "formula": "R_i - B_i = C_i^T beta + epsilon_i",
    "fit_intercept": False,
    "baseline": "same_task_bare_validation",
    "primary_outcome": "reward",
    "rewrite_rule": "mutually_exclusive_family_argmax_old_on_tie",
    "selection_rule": "rewrite_winners_then_strictly_positive_top_k",
}
PROTOCOL: Json = {
    "masked_rollouts_per_task": 1,
    "reused_bare_rollouts_per_task": 1,
    "masking": "uniform_absent_or_one_version_per_logical_slot",
    "rewrite_treatment": "mutually_exclusive_absent_old_new",
    "estimator": ESTIMATOR["name"],
    "formula": ESTIMATOR["formula"],
    "selection": "replacement_winner_then_strictly_positive_top_k",
}


def judge(
    layout: Layout,
    observations: Sequence[Observation],
    *,
    dropped: Sequence[str],
    budget: int,
    pool_sha256: str,
    assignment_sha256: str,
    bare_baseline: Json,
) -> Judgement:
    """Fit, select and document a published gate. Raises InputError when effects are confounded."""
    outcomes = sorted(observations[0].masked)
    X = design_matrix([each.assignment for each in observations], layout.columns)
    masked = np.array([[each.masked[name] for name in outcomes] for each in observations])
    bare = np.array([[each.bare[name] for name in outcomes] for each in observations])
    fit = least_squares(X, masked - bare)
    estimated = estimates(fit, layout.columns, outcomes, masked, bare)
    selection = select(layout, estimated["reward"]["coefficients"], budget)
    contributions = contributions_document(
        layout,
        selection,
        estimator=ESTIMATOR,
        pool_sha256=pool_sha256,
        assignment_sha256=assignment_sha256,
        requested=len(observations) + len(dropped),
        dropped=dropped,
        budget=budget,
        estimated=estimated,
        observations_table=[each.to_record(layout.columns) for each in observations],
        bare_baseline=bare_baseline,
    )
    inference = inference_document(layout, X, fit, outcomes, masked - bare)
    return Judgement(selection, ESTIMATOR, contributions, inference)
