"""Health of a gate, before its numbers: what was checked, with both sides of each comparison.

A check that fails makes the gate incomplete: no selection is shown. Checks are computed from rows
and from the gate's own summary; what a file does not say is "unknown", never "passed"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from intraskill_web.core import formats
from intraskill_web.gates.models import GateRun


@dataclass(frozen=True, slots=True)
class Check:
    """``ok`` is None when nothing is known."""

    key: str
    label: str
    detail: str
    ok: bool | None


def checks(gate: GateRun, *, documents: dict[str, str]) -> list[Check]:
    """All checks in a fixed order; ``documents`` are sha256 by kind from the run folder."""
    summary: dict[str, Any] = gate.summary
    pairs = _("%(n)s of %(total)s pairs") % {
        "n": formats.count(gate.observations), "total": formats.count(gate.requested),
    }  # fmt: skip
    made = [
        Check(
            "coverage",
            _("Coverage"),
            pairs,
            gate.observations == gate.requested and gate.requested > 0,
        ),
        Check(
            "dropped",
            _("Dropped pairs"),
            formats.count(gate.requested - gate.observations),
            gate.observations == gate.requested,
        ),
        Check(
            "status",
            _("Gate finished"),
            str(summary.get("reason") or gate.status),
            gate.status == "complete",
        ),
        Check(
            "assignment",
            _("Assignments frozen"),
            formats.hash8(gate.assignment_sha256),
            bool(gate.assignment_sha256) or None,
        ),
        Check(
            "pool",
            _("Pool frozen"),
            formats.hash8(gate.pool_sha256),
            bool(gate.pool_sha256) or None,
        ),
    ]
    condition = summary.get("condition_number")
    if isinstance(condition, int | float):
        made.append(Check("condition", _("Condition number"), f"{condition:.3g}", condition < 30))
    return made


def balance(rows: list[Any]) -> list[tuple[Any, float]]:
    """Each intervention with the z of its inclusion count against one half of its pairs.

    A version in a family of m is shown with probability 1 / (m + 1); only single versions are
    judged."""
    sizes: dict[str, int] = {}
    for row in rows:
        sizes[row.logical_chunk_id] = sizes.get(row.logical_chunk_id, 0) + 1
    out = []
    for row in rows:
        n = row.with_n + row.without_n
        if not n:
            continue
        p = 1 / (sizes[row.logical_chunk_id] + 1)
        out.append((row, (row.with_n - n * p) / (n * p * (1 - p)) ** 0.5))
    return out
