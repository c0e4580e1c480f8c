"""The document of a comparison: differences b - a with intervals, tests and what could be seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trainer.canonical import utc_now
from trainer.compare.bootstrap import RESAMPLES, SEED, Array, bca_interval, published_interval
from trainer.compare.outcomes import Arm
from trainer.compare.paired import Transitions, detectable, holm, mcnemar, newcombe, sign_flip
from trainer.errors import InputError
from trainer.means import mean

SCHEMA = "intraskill-comparison-v1"
PRIMARY = ("reward", "r_success")


def compare(
    a: Arm, b: Arm, *, primary: Sequence[str] = PRIMARY, seed: int = SEED
) -> dict[str, Any]:
    """Compare two arms task by task. Raises InputError when their tasks or metrics do not match.

    Intervals under ``interval`` follow the published convention; ``tests`` judge the declared
    ``primary`` metrics, with Holm's adjustment over them.
    """
    if a.task_ids != b.task_ids:
        differing = sorted(set(a.task_ids) ^ set(b.task_ids))
        raise InputError("the arms hold different tasks", field="task_id", value=differing[:5])
    if len(a.task_ids) < 2:
        raise InputError("two tasks at least are needed", field="task_id", value=a.task_ids)
    metrics = [name for name in a.values if name in b.values]
    unknown = [name for name in (*primary, "r_success") if name not in metrics]
    if unknown:
        raise InputError(
            "both arms need this metric",
            field="primary",
            value=unknown,
            remedy="common to both: " + ", ".join(metrics),
        )
    table = transitions(a.values["r_success"], b.values["r_success"])
    return {
        "schema_version": SCHEMA,
        "created_at": utc_now(),
        "a": a.name,
        "b": b.name,
        "pairs": len(a.task_ids),
        "difference_direction": "b_minus_a",
        "bootstrap": {
            "method": "task_level_paired_percentile",
            "samples": RESAMPLES,
            "seed": seed,
            "confidence_level": 0.95,
        },
        "metrics": {name: _metric(name, a.values[name], b.values[name], seed) for name in metrics},
        "transitions": None if table is None else table.to_record(),
        "tests": _tests(a, b, table, primary, seed),
    }


def _metric(name: str, a: Array, b: Array, seed: int) -> dict[str, Any]:
    differences = b - a
    return {
        "a_mean": mean(a),
        "b_mean": mean(b),
        "difference": mean(differences),
        "interval": list(published_interval(differences, name, seed=seed)),
        "bca_interval": list(bca_interval(differences)),
        "sd": float(np.std(differences, ddof=1)),
        "detectable_difference": detectable(differences),
    }


def transitions(a: Array, b: Array) -> Transitions | None:
    """How successes moved; None when tasks were played several times and succeeded in part."""
    both = np.concatenate([a, b])
    return Transitions.of(a, b) if np.isin(both, (0.0, 1.0)).all() else None


def _tests(
    a: Arm, b: Arm, table: Transitions | None, primary: Sequence[str], seed: int
) -> dict[str, Any]:
    flips = {name: sign_flip(b.values[name] - a.values[name], seed=seed) for name in primary}
    raw = dict(flips)
    if table is not None:
        exact, mid = mcnemar(table)
        if "r_success" in raw:
            raw["r_success"] = exact
    return {
        "mcnemar": None if table is None else {"exact": exact, "mid_p": mid},
        "newcombe_interval": None if table is None else list(newcombe(table)),
        "sign_flip": flips,
        "primary": list(primary),
        "p_values": raw,
        "holm": holm(raw),
    }


def markdown(document: Mapping[str, Any]) -> str:
    """The comparison as a table for people."""
    lines = [
        f"{document['b']} minus {document['a']}, {document['pairs']} tasks",
        "",
        "| metric | a | b | difference | 95 % interval | detectable |",
        "|---|---:|---:|---:|---|---:|",
    ]
    for name, row in document["metrics"].items():
        low, high = row["interval"]
        lines.append(
            f"| {name} | {row['a_mean']:.4f} | {row['b_mean']:.4f} | {row['difference']:+.4f} "
            f"| [{low:+.4f}, {high:+.4f}] | {row['detectable_difference']:.4f} |"
        )
    return "\n".join(lines) + "\n"
