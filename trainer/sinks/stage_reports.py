"""What a tracker shows of a finished analysis or gate: numbers, one table, files worth keeping.

Pure: read from the stage's own documents, so a report can be made any time later. Names and sources
are those of training.md §5.3 and §5.4. Gold-aware cards are privileged: they are part of a report
only when that is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainer.errors import InputError
from trainer.files import read_json

Json = Mapping[str, Any]
ANALYSIS_COUNTS = (
    "triage_groups",
    "analyzed_cards",
    "eligible_cards",
    "candidates",
    "proposal_history_records",
)
ANALYSIS_FILES = ("analysis_summary.json", "candidate_pool.json", "proposal_ledger.jsonl")
PRIVILEGED_FILES = ("failure_cards.jsonl",)
GATE_COUNTS = ("requested", "trace_files", "completed", "failed", "scored", "coverage")
GATE_PRIMARY = ("reward_mean", "reward_sem", "success_rate")
GATE_FILES = (
    "online_gate_manifest.json",
    "contributions.json",
    "selected_skillbank.json",
    "selected_skill.md",
    "proposal_ledger.jsonl",
    "mask_assignments.json",
)
TABLE = "gate/chunk_contributions"
TABLE_COLUMNS = (
    "intervention_id",
    "logical_chunk_id",
    "operation",
    "coefficient",
    "rank",
    "status",
)


@dataclass(frozen=True, slots=True)
class StageReport:
    """Metrics by full name, at most one table, and the files that exist."""

    stage: str
    metrics: Mapping[str, float]
    files: tuple[Path, ...]
    table: tuple[tuple[Any, ...], ...] = field(default=())


def analysis_report(folder: Path, *, privileged: bool = False) -> StageReport:
    """The report of an analysis. ``privileged`` adds the gold-aware failure cards."""
    summary = read_json(folder / "analysis_summary.json")
    metrics = {f"analysis/{name}": summary.get(name) for name in ANALYSIS_COUNTS}
    metrics["analysis/evidence_only_cards"] = len(summary.get("evidence_only_card_ids") or ())
    wanted = ANALYSIS_FILES + (PRIVILEGED_FILES if privileged else ())
    return StageReport("analysis", numeric(metrics), _existing(folder, wanted))


def gate_report(folder: Path) -> StageReport:
    """The report of a gate; an incomplete one says only how far it came."""
    manifest = read_json(folder / "online_gate_manifest.json")
    complete = manifest.get("status") == "complete"
    summary: Json = manifest.get("summary") or {}
    metrics: dict[str, Any] = {"gate/complete": complete}
    counts: Json = summary.get("counts") or {}
    metrics |= {f"gate/validation/{name}": counts.get(name) for name in GATE_COUNTS}
    if not complete:
        return StageReport("gate", numeric(metrics), _existing(folder, GATE_FILES))
    contributions = read_json(folder / "contributions.json")
    metrics |= _outcomes(manifest, summary, contributions)
    rows = contributions["contributions"]
    metrics |= _coefficients(rows, contributions)
    table = tuple(tuple(row.get(column) for column in TABLE_COLUMNS) for row in rows)
    return StageReport("gate", numeric(metrics), _existing(folder, GATE_FILES), table)


def _outcomes(manifest: Json, summary: Json, contributions: Json) -> dict[str, Any]:
    primary: Json = summary.get("primary") or {}
    components: Json = summary.get("reward_components") or {}
    bare: Json = (manifest.get("input") or {}).get("bare_baseline") or {}
    reward: Json = (contributions.get("estimates") or {}).get("reward") or {}
    return {
        **{f"gate/masked/{name}": primary.get(name) for name in GATE_PRIMARY},
        **{
            f"gate/masked/reward_component/{name}": value
            for name, value in components.items()
            if name.startswith("r_")
        },
        **{f"gate/bare/{k}": v for k, v in (bare.get("mean_outcomes") or {}).items()},
        **{
            f"gate/reward/{name}": reward.get(name)
            for name in ("bare_mean", "masked_mean", "delta_mean")
        },
    }


def _coefficients(rows: list[Json], contributions: Json) -> dict[str, Any]:
    values = [row["coefficient"] for row in rows if _is_number(row.get("coefficient"))]
    return {
        "gate/intervention_count": len(rows),
        "gate/positive_chunk_count": sum(value > 0 for value in values),
        "gate/selected_chunk_count": len(contributions["selected_intervention_ids"]),
        "gate/coefficient_mean": math.fsum(values) / len(values) if values else None,
        "gate/coefficient_max": max(values, default=None),
    }


def report_of(folder: Path, *, privileged: bool = False) -> StageReport:
    """The report of whatever stage lies in ``folder``. Raises InputError for neither."""
    if (folder / "online_gate_manifest.json").is_file():
        return gate_report(folder)
    if (folder / "analysis_summary.json").is_file():
        return analysis_report(folder, privileged=privileged)
    raise InputError("holds neither a gate nor an analysis", file=folder)


def numeric(values: Mapping[str, Any]) -> dict[str, float]:
    """Numbers as floats, truth values as 0 and 1; everything else is left out."""
    return {
        name: float(value)
        for name, value in values.items()
        if isinstance(value, bool) or _is_number(value)
    }


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _existing(folder: Path, names: tuple[str, ...]) -> tuple[Path, ...]:
    return tuple(folder / name for name in names if (folder / name).is_file())
