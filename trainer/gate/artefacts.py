"""The files of a finished gate: contributions, next bank, its readable twin, manifest.

Schemas, key order and hashes are the published ones, so that imported and own gates read alike.
What the published schemas have no place for (standard errors, intervals, p-values) lies beside them
in ``inference.json``. Specification: gate-analysis.md §8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trainer.canonical import fingerprint, utc_now
from trainer.gate.pool import CandidatePool
from trainer.gate.regression import NORMAL_95, Array, Fit
from trainer.gate.selection import Selection, next_chunks
from trainer.gate.slots import Layout
from trainer.means import mean
from trainer.skills.bank import bank_document

Json = Mapping[str, Any]

CONTRIBUTIONS_SCHEMA = "shopsimrl-online-chunk-contributions-v2"
MANIFEST_SCHEMA = "shopsimrl-online-validation-gate-v2"
INFERENCE_SCHEMA = "intraskill-gate-inference-v1"
NOTE = "> Active skill frozen by online randomized validation."
EMPTY_NOTE = "No chunk was selected: the active skill is empty."


def estimates(
    fit: Fit, columns: Sequence[str], outcomes: Sequence[str], masked: Array, bare: Array
) -> dict[str, Any]:
    """Coefficients and means of every outcome; ``masked`` and ``bare`` are (n, m)."""
    return {
        outcome: {
            "intercept": 0.0,
            "coefficients": dict(zip(columns, fit.beta[:, m].tolist(), strict=True)),
            "observations": len(masked),
            "masked_mean": mean(masked[:, m]),
            "bare_mean": mean(bare[:, m]),
            "delta_mean": mean(masked[:, m] - bare[:, m]),
        }
        for m, outcome in enumerate(outcomes)
    }


def contributions_document(
    layout: Layout,
    selection: Selection,
    *,
    estimator: Json,
    pool_sha256: str,
    assignment_sha256: str,
    requested: int,
    dropped: Sequence[str],
    budget: int,
    estimated: Json,
    observations_table: Sequence[Json],
    bare_baseline: Json,
    schema: str = CONTRIBUTIONS_SCHEMA,
) -> dict[str, Any]:
    """``contributions.json``: every coefficient, its verdict and the data behind it."""
    return {
        "schema_version": schema,
        "created_at": utc_now(),
        "estimator": dict(estimator),
        "pool_sha256": pool_sha256,
        "assignment_sha256": assignment_sha256,
        "observations": len(observations_table),
        "requested_observations": requested,
        "dropped_episode_ids": list(dropped),
        "active_skill_budget": budget,
        "selected_intervention_ids": list(selection.selected),
        "selected_count": len(selection.selected),
        "replacement_winners": dict(selection.winners),
        "estimates": dict(estimated),
        "contributions": [
            contribution_row(layout, selection, name, estimated) for name in layout.columns
        ],
        "observations_table": list(observations_table),
        "bare_baseline": dict(bare_baseline),
    }


def contribution_row(
    layout: Layout, selection: Selection, name: str, estimated: Json
) -> dict[str, Any]:
    """One column: who it is, what it adds to the reward and to its parts, what became of it."""
    intervention, verdict = layout.interventions[name], selection.verdicts[name]
    return {
        "intervention_id": name,
        "kind": intervention.kind,
        "logical_chunk_id": intervention.logical_chunk_id,
        "operation": intervention.operation,
        "order": intervention.order,
        "coefficient": verdict.coefficient,
        "rank": verdict.rank,
        "status": verdict.status,
        "auxiliary_coefficients": {
            outcome: estimate["coefficients"][name]
            for outcome, estimate in estimated.items()
            if outcome != "reward"
        },
    }


def inference_document(
    layout: Layout, X: Array, fit: Fit, outcomes: Sequence[str], delta: Array
) -> dict[str, Any]:
    """``inference.json`` of a published gate: how sure each coefficient is (HC3, t intervals).

    ``X`` (n, k) are the masks, ``delta`` (n, m) the differences masked minus bare.
    """
    shown = X.sum(axis=0).astype(int)
    at = list(outcomes).index("reward")
    p = fit.p_value()[:, at]
    found = fitted(fit, outcomes)
    rows = [
        {
            "intervention_id": name,
            **found[j]["reward"],
            "p": float(p[j]),
            "with_n": int(shown[j]),
            "without_n": int(len(X) - shown[j]),
            "outcomes": found[j],
        }
        for j, name in enumerate(layout.columns)
    ]
    return {
        "schema_version": INFERENCE_SCHEMA,
        "created_at": utc_now(),
        "profile": "published",
        "standard_errors": "HC3",
        "degrees_of_freedom": fit.degrees_of_freedom,
        "delta": mean_with_interval(delta[:, at]),
        "rows": rows,
    }


def fitted(fit: Fit, outcomes: Sequence[str]) -> list[dict[str, dict[str, Any]]]:
    """Coefficient, standard error and 95 % interval of each outcome, for every column."""
    low, high = fit.interval()
    error = fit.standard_error
    return [
        {
            outcome: {
                "coefficient": float(fit.beta[j, m]),
                "se": float(error[j, m]),
                "ci95": [float(low[j, m]), float(high[j, m])],
            }
            for m, outcome in enumerate(outcomes)
        }
        for j in range(len(fit.beta))
    ]


def mean_with_interval(values: Array) -> dict[str, Any]:
    """Mean and normal 95 % interval of the mean; nothing of fewer than two values."""
    if len(values) < 2:
        return {"mean": None, "ci95": None}
    centre = mean(values)
    half = NORMAL_95 * float(np.std(values, ddof=1)) / len(values) ** 0.5
    return {"mean": centre, "ci95": [centre - half, centre + half]}


def selected_bank(
    layout: Layout,
    selection: Selection,
    pool: CandidatePool,
    *,
    assignment_sha256: str,
    budget: int,
    bare_baseline: Json,
    estimator: Json,
) -> dict[str, Any]:
    """The next bank's document."""
    return bank_document(
        next_chunks(layout, selection),
        bank_version=f"online-{pool.round_id}-selected-v1",
        metadata={
            "round_id": pool.round_id,
            "proposal_checkpoint": pool.proposal_checkpoint,
            "pool_sha256": pool.pool_sha256,
            "assignment_sha256": assignment_sha256,
            "active_skill_budget": budget,
            "selected_count": len(selection.selected),
            "selected_intervention_ids": list(selection.selected),
            "estimator": dict(estimator),
            "bare_baseline": dict(bare_baseline),
        },
    )


def skill_markdown(bank: Json) -> str:
    """The bank as one readable text."""
    texts = [skill["content"] for skill in bank["skills"]] or [EMPTY_NOTE]
    return "\n\n".join(["# Shopping Skill", NOTE, *texts]) + "\n"


def gate_manifest(
    *,
    schema: str,
    status: str,
    config: Json,
    protocol: Json,
    inputs: Json,
    summary: Json | None,
    outputs: Json | None,
    extra: Json | None = None,
) -> dict[str, Any]:
    """A gate's manifest. ``extra`` holds keys that the published schemas lack."""
    return {
        "schema_version": schema,
        "created_at": utc_now(),
        "status": status,
        "config": dict(config),
        "protocol": dict(protocol),
        "input": dict(inputs),
        "summary": None if summary is None else dict(summary),
        "output": None if outputs is None else dict(outputs),
        **(extra or {}),
    }


def output_hashes(documents: Mapping[str, Any]) -> dict[str, Any]:
    """Fingerprints of the parsed outputs without their times: equal runs have equal ones.

    ``documents`` are keyed by file name; JSON Lines files are lists. Texts are not hashed: they
    follow from the rest.
    """
    hashes = {
        f"{Path(name).stem}_sha256": fingerprint(
            without_time(value) if isinstance(value, Mapping) else value
        )
        for name, value in documents.items()
        if not isinstance(value, str)
    }
    bank = documents["selected_skillbank.json"]
    return {**hashes, "selected_chunk_ids": [skill["skill_id"] for skill in bank["skills"]]}


def without_time(document: Json) -> Json:
    """A document without the moment it was made at."""
    return {key: value for key, value in document.items() if key != "created_at"}
