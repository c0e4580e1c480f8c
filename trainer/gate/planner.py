"""What a gate will be able to see, before anything is played.

For a fair-coin slot the standard error is about 2·SD/√n; the exact one follows from the drawn
design, SD·sqrt(diag((C'C)^-1)), with SD the standard deviation of a task's difference in reward. An
effect is found with 80 % power at the two-sided 5 % level when it is 2.80 standard errors large.
Specification: gate-analysis.md §16.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.gate.assignment import assignment_document, design_matrix, draw_assignments
from trainer.gate.pool import CandidatePool
from trainer.gate.regression import check_design
from trainer.gate.slots import build_layout


def plan_summary(
    pool: CandidatePool,
    *,
    task_ids: Sequence[int],
    split: str,
    experiment_seed: int,
    mask_seed: int,
    profile: str,
    sd: float,
) -> dict[str, Any]:
    """The design of a gate and the standard error of each column (``sd`` in reward units)."""
    layout = build_layout(pool)
    rows = draw_assignments(
        layout,
        task_ids=task_ids,
        split=split,
        experiment_seed=experiment_seed,
        mask_seed=mask_seed,
    )
    X = design_matrix(rows, layout.columns)
    check_design(X, layout.columns)
    document = assignment_document(layout, rows, mask_seed=mask_seed, pool_sha256=pool.pool_sha256)
    return {
        "profile": profile,
        "pool_sha256": pool.pool_sha256,
        "assignment_sha256": document["assignment_sha256"],
        "observations": len(rows),
        "columns": list(layout.columns),
        "slots": document["slots"],
        "sd": sd,
        "expected_se": dict(zip(layout.columns, design_se(X, sd).tolist(), strict=True)),
    }


def design_se(X: NDArray[np.float64], sd: float) -> NDArray[np.float64]:
    """Standard errors of all columns of a design when every residual has this SD."""
    return sd * np.sqrt(np.diagonal(np.linalg.inv(X.T @ X)))
