"""What a gate will be able to see, before anything is played.

The standard error of a column follows from the design and from SD, the standard deviation of a
task's difference in reward (taken from the last gate or a pilot): SD·sqrt(diag((Z'Z)^-1)). For a
slot of its own that is about 2·SD/sqrt(n) in a published gate of n tasks and SD/sqrt(n) in a
standard one, at two masked rollouts a task in place of one masked and one bare. An effect is found
with 80 % power at the two-sided 5 % level when it is 2.80 standard errors large.

Each further candidate raises the evidence that Holm's rule asks of all of them; the planner says
how many a gate can judge. Specification: gate-analysis.md §16.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import special

from trainer.errors import InputError
from trainer.gate.assignment import assignment_document, design_matrix, draw_assignments
from trainer.gate.pool import Candidate, CandidatePool
from trainer.gate.regression import Array, check_design
from trainer.gate.slots import Layout, build_layout
from trainer.gate.standard.design import SCHEMA, deal
from trainer.gate.standard.settings import StandardSettings
from trainer.skills.types import Chunk

DETECTABLE = float(special.ndtri(0.975) + special.ndtri(0.8))
POWER = 0.8
MAX_CANDIDATES = 64
MOST_GROWTH = 1e5  # of the precision that one may wish for


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
    if profile == "published":
        rows = draw_assignments(
            layout,
            task_ids=task_ids,
            split=split,
            experiment_seed=experiment_seed,
            mask_seed=mask_seed,
        )
        document = assignment_document(
            layout, rows, mask_seed=mask_seed, pool_sha256=pool.pool_sha256
        )
        design = design_matrix(rows, layout.columns)
    else:
        rows = deal(
            layout,
            task_ids=task_ids,
            split=split,
            experiment_seed=experiment_seed,
            mask_seed=mask_seed,
            round_id=pool.round_id,
        )
        document = assignment_document(
            layout,
            rows,
            mask_seed=mask_seed,
            pool_sha256=pool.pool_sha256,
            schema=SCHEMA,
            extra={"round_id": pool.round_id},
        )
        masks = design_matrix(rows, layout.columns)
        design = masks[::2] - masks[1::2]
    check_design(design, layout.columns)
    errors = design_se(design, sd)
    return {
        "profile": profile,
        "pool_sha256": pool.pool_sha256,
        "assignment_sha256": document["assignment_sha256"],
        "observations": len(rows),
        "columns": list(layout.columns),
        "slots": document["slots"],
        "sd": sd,
        "expected_se": dict(zip(layout.columns, errors.tolist(), strict=True)),
        "warnings": warnings(layout, errors, StandardSettings(), StandardSettings().retire_margin),
    }


def design_se(design: Array, sd: float) -> Array:
    """Standard errors of all columns of a design when every residual has this SD."""
    return np.asarray(sd * np.sqrt(np.diagonal(np.linalg.inv(design.T @ design))))


def imagined_layout(chunks: int, rewrites: Sequence[int], additions: int) -> Layout:
    """A layout of this many current chunks, the first of which have these numbers of rewrites."""
    current = tuple(Chunk(f"chunk-{i + 1:02d}", "text") for i in range(chunks))
    candidates = [
        Candidate(f"rewrite-{i + 1:02d}-{r + 1}", "REWRITE", current[i].skill_id, "text")
        for i, count in enumerate(rewrites)
        for r in range(count)
    ]
    candidates += [
        Candidate(f"addition-{i + 1:02d}", "ADD", None, "text") for i in range(additions)
    ]
    return build_layout(CandidatePool("round-000", "", "", current, tuple(candidates), ""))


def power_report(
    layout: Layout,
    *,
    tasks: int,
    sd: float,
    profile: str,
    effect: float | None = None,
    settings: StandardSettings | None = None,
) -> dict[str, Any]:
    """SE and smallest detectable effect of each column, and the rollouts a wished effect needs.

    ``effect`` defaults to the retire margin. Rollouts count two for every task: masked and bare, or
    both masked. Raises InputError when no number of rollouts would do.
    """
    settings = settings or StandardSettings()
    wished = settings.retire_margin if effect is None else effect
    errors = design_se(_typical_design(layout, tasks, profile), sd)
    growth = DETECTABLE * errors / wished
    if growth.max() > MOST_GROWTH:
        raise InputError(
            f"no gate finds it: at {tasks} tasks {DETECTABLE * errors.max():.2g} can be detected",
            field="effect",
            value=wished,
        )
    needed = 2 * np.ceil(tasks * growth**2).astype(int)
    columns = layout.columns
    return {
        "profile": profile,
        "tasks": tasks,
        "planned_rollouts": 2 * tasks,
        "sd": sd,
        "effect": wished,
        "se": dict(zip(columns, errors.tolist(), strict=True)),
        "mde": dict(zip(columns, (DETECTABLE * errors).tolist(), strict=True)),
        "rollouts": dict(zip(columns, needed.tolist(), strict=True)),
        "candidates": len(_candidates(layout)),
        "candidates_judged": judged_candidates(float(np.median(errors)), wished, settings),
        "warnings": warnings(layout, errors, settings, wished),
    }


def _typical_design(layout: Layout, tasks: int, profile: str) -> Array:
    settings: Mapping[str, Any] = {
        "task_ids": range(tasks),
        "split": "val",
        "experiment_seed": 1,
        "mask_seed": 1,
    }
    if profile == "published":
        design = design_matrix(draw_assignments(layout, **settings), layout.columns)
    else:
        rows = deal(layout, **settings, round_id="round-000")
        masks = design_matrix(rows, layout.columns)
        design = masks[::2] - masks[1::2]
    check_design(design, layout.columns)
    return design


def judged_candidates(error: float, effect: float, settings: StandardSettings) -> int:
    """The most candidates of which each, if worth ``effect``, is adopted with 80 % power."""
    count = 0
    for candidates in range(1, MAX_CANDIDATES + 1):
        level = min(settings.adopt_alpha, settings.adopt_familywise / candidates)
        if effect / error < special.ndtri(1 - level) + special.ndtri(POWER):
            break
        count = candidates
    return count


def warnings(layout: Layout, errors: Array, settings: StandardSettings, wished: float) -> list[str]:
    """What the gate will not be able to tell about effects of the wished size."""
    candidates = _candidates(layout)
    index = {name: position for position, name in enumerate(layout.columns)}
    found = []
    typical = float(np.median(errors[[index[name] for name in candidates]])) if candidates else 0.0
    if candidates:
        judged = judged_candidates(typical, wished, settings)
        if judged < len(candidates):
            found.append(
                f"{len(candidates)} candidates are admitted, but with a standard error of "
                f"{typical:.4f} an effect of {wished} is adopted with 80 % power for at most "
                f"{judged}: admit fewer or play more tasks"
            )
    blind = [n for n in layout.columns if DETECTABLE * errors[index[n]] > wished]
    if blind:
        found.append(
            f"an effect of {wished} is below what {len(blind)} of {len(layout.columns)} columns "
            "can detect"
        )
    return found


def _candidates(layout: Layout) -> list[str]:
    return [name for name, item in layout.interventions.items() if item.kind == "candidate"]
