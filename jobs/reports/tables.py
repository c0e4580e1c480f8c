"""The downloads: every table of the document as CSV and Parquet, full precision."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trainer.analysis import Analysis, Material
from trainer.analysis.schema_outcomes import Arm, Contrast
from trainer.analysis.schema_values import Table

if TYPE_CHECKING:
    import pandas as pd

Rows = list[dict[str, Any]]


def tables(material: Material) -> dict[str, Rows]:
    """Name → rows; a table without rows is left out."""
    found = material.analysis
    made: dict[str, Rows] = {
        "rounds": _rounds(found),
        "funnel": [
            {"round": r.round, "figure": key, **figure.model_dump()}
            for r in found.rounds
            for key, figure in r.funnel.items()
        ],
        "curricula": [
            {"round": r.round, "state_id": r.state_id, "q": r.q, "skill_id": k, "rho": rho}
            for r in found.rounds
            for k, rho in r.rho.items()
        ],
        "gates": [_gate(gate) for gate in found.gates],
        "coefficients": [flat(row.model_dump()) for row in found.coefficients],
        "candidates": [row.model_dump() for row in found.candidates],
        "banks": [
            {"version": b.label, "bank_sha256": b.bank_sha256, **c.model_dump()}
            for b in found.banks
            for c in b.chunks
        ],
        "recorded": _contrasts(found.recorded),
        "ranking": _arms(found.ranking),
        "ranking_differences": _contrasts(found.ranking_contrasts),
        "training_steps": _rows(found.training),
        "optimizer_updates": _rows(found.updates),
        "optimiser": [flat(each.model_dump()) for each in found.update_summaries],
        "cohorts": [
            {"cohort": c.name, "split": c.split, "outcome": c.outcome, "metric": metric,
             **d.model_dump(), "source": c.source}
            for c in found.cohorts
            for metric, d in c.metrics.items()
        ],
        "phases": [
            {"cohort": c.name, "outcome": c.outcome, "phase": phase, **values, "source": c.source}
            for c in found.cohorts
            for phase, values in c.phases.items()
        ],
        "pairs": [
            {"pair": p.name, "subset": p.subset, **flat(d.model_dump())}
            for p in found.pairs
            for d in p.metrics
        ],
        "facts": [{"fact": key, **figure.model_dump()} for key, figure in found.facts.items()],
        "episodes": _episodes(material),
    }  # fmt: skip
    for test in found.tests:
        made[f"arms_{test.split}"] = _arms(test.arms)
        made[f"differences_{test.split}"] = _contrasts(test.contrasts)
        made[f"transitions_{test.split}"] = [
            {
                "contrast": c.name,
                **(c.transitions or {}),
                "n": c.n,
                "mcnemar_exact": c.mcnemar_exact,
                "mcnemar_mid_p": c.mcnemar_mid_p,
                "source": c.source,
            }
            for c in test.contrasts
        ]
    for split, arms in material.outcomes.items():
        made[f"outcomes_{split}"] = [
            {"condition": condition, "task_id": task, **{m: float(v[i]) for m, v in
                                                         sorted(arm.values.items())}}
            for condition, arm in arms.items()
            for i, task in enumerate(arm.task_ids)
        ]  # fmt: skip
    return {name: rows for name, rows in sorted(made.items()) if rows}


def _rounds(found: Analysis) -> Rows:
    return [
        {
            "round": r.round, "step": r.step, "q": r.q, "state_id": r.state_id,
            "input_chunks": r.input_chunks, "selected_chunks": r.selected_chunks,
            **{key: figure.value for key, figure in r.funnel.items()},
        }
        for r in found.rounds
    ]  # fmt: skip


def _gate(gate: Any) -> dict[str, Any]:
    low, high = gate.delta_interval or (None, None)
    return {
        "round": gate.round, "profile": gate.profile, "status": gate.status, "n": gate.n,
        "columns": gate.columns,
        **{f"bare_{k}": f.value for k, f in sorted(gate.bare.items())},
        **{f"masked_{k}": f.value for k, f in sorted(gate.masked.items())},
        **{k: f.value for k, f in gate.behaviour.items()},
        "delta": gate.delta.value, "delta_low": low, "delta_high": high,
        "pool_sha256": gate.pool_sha256, "assignment_sha256": gate.assignment_sha256,
        "selected_bank_sha256": gate.selected_bank_sha256,
        "condition_number": gate.condition_number, "refit_max_error": gate.refit_max_error,
        "stated_refit_max_error": gate.stated_refit_max_error, "source": gate.source,
    }  # fmt: skip


def _arms(arms: Sequence[Arm]) -> Rows:
    return [
        {"arm": a.name, "condition": a.condition, "step": a.step, "bank": a.bank, "figure": key,
         **figure.model_dump()}
        for a in arms
        for key, figure in a.figures.items()
    ]  # fmt: skip


def _contrasts(contrasts: Sequence[Contrast]) -> Rows:
    return [
        {"contrast": c.name, "convention": c.convention, **flat(d.model_dump())}
        for c in contrasts
        for d in c.differences
    ]


def _rows(table: Table) -> Rows:
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def _episodes(material: Material) -> Rows:
    return [
        {"cohort": p.name, "split": p.split, "task_id": e.task_id, "sample_id": e.sample_id,
         "outcome": e.outcome, "reward": e.reward, "termination": e.termination, **e.values}
        for p in material.episodes
        for e in p.episodes
    ]  # fmt: skip


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Intervals as two columns, nested numbers with their names joined."""
    found: dict[str, Any] = {}
    for key, value in row.items():
        if key.endswith("interval"):
            found[f"{key}_low"], found[f"{key}_high"] = value or (None, None)
        elif isinstance(value, Mapping):
            found |= {(k if key == "figures" else f"{key}_{k}"): v for k, v in value.items()}
        else:
            found[key] = value
    return found


def frame(rows: Rows) -> pd.DataFrame:
    """The rows as a data frame, columns in order of first appearance."""
    import pandas as pd

    columns = list(dict.fromkeys(key for row in rows for key in row))
    return pd.DataFrame(rows, columns=columns)


def csv_bytes(data: pd.DataFrame) -> bytes:
    """CSV in full precision, LF line ends."""
    return str(data.to_csv(index=False, lineterminator="\n")).encode()


def parquet_bytes(data: pd.DataFrame) -> bytes:
    """Parquet; columns that mix kinds of values are written as text."""
    buffer = io.BytesIO()
    plain = data.copy()
    for name in plain.columns:
        kinds = {type(v) for v in plain[name].dropna()}
        if kinds - {int, float} and len(kinds) > 1:
            plain[name] = [None if v is None else str(v) for v in plain[name]]
    plain.to_parquet(buffer, index=False, engine="pyarrow", compression="zstd")
    return buffer.getvalue()
