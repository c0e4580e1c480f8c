"""Health of a gate, before its numbers: what was checked, with both sides of each comparison.

A check that fails makes the gate incomplete: no selection is shown. Checks are computed from rows
and from the gate's own summary; what a file does not say is unknown, never passed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from intraskill_web.core import formats
from intraskill_web.core.labels import GATE_STATES, word
from intraskill_web.episodes.models import Episode
from intraskill_web.gates.models import Contribution, GateRun

UNBALANCED_P = 0.001  # a sample ratio this unlikely is a fault, not chance


@dataclass(frozen=True, slots=True)
class Check:
    """``ok`` is None when nothing is known."""

    key: str
    label: str
    detail: str
    ok: bool | None


def checks(gate: GateRun, rows: Sequence[Contribution]) -> list[Check]:
    """All checks in a fixed order; one query."""
    summary: dict[str, Any] = gate.summary
    pairs = _("%(n)s of %(total)s pairs") % {
        "n": formats.count(gate.observations),
        "total": formats.count(gate.requested),
    }
    pool, assignment = gate.pool_sha256, gate.assignment_sha256
    checkpoint = str(summary.get("checkpoint_id") or "")
    tested = Episode.objects.filter(
        round=gate.round, purpose__in=("bare", "masked"), split="test"
    ).count()
    untouched = _("%(n)s test tasks in either run") % {"n": formats.count(tested)}
    return [
        Check(
            "status", _("Gate finished"), word(GATE_STATES, gate.status), gate.status == "complete"
        ),
        Check("coverage", _("Coverage"), pairs, _covered(gate) if _counted(gate) else None),
        _balance(gate, rows),
        Check("pool", _("Pool frozen"), formats.hash8(pool), bool(pool) or None),
        Check(
            "assignment",
            _("Assignments frozen"),
            formats.hash8(assignment),
            bool(assignment) or None,
        ),
        Check(
            "checkpoint",
            _("One checkpoint"),
            checkpoint or formats.UNKNOWN,
            bool(checkpoint) or None,
        ),
        Check("test_split", _("Test split untouched"), untouched, tested == 0),
    ]


def sound(gate: GateRun, rows: Sequence[Contribution]) -> bool:
    """Whether what rows alone can tell allows to show a selection; no query."""
    whole = _covered(gate) or not _counted(gate)
    return gate.status == "complete" and whole and _balance(gate, rows).ok is not False


def _counted(gate: GateRun) -> bool:
    """Whether the pairs are known; of an imported gate they may not be."""
    return gate.requested > 0 or not gate.summary.get("imported")


def _covered(gate: GateRun) -> bool:
    """Whether as many pairs are complete as the gate's settings ask for."""
    least = gate.summary.get("min_coverage", 1.0) * gate.requested
    return gate.requested > 0 and gate.observations >= least


def _balance(gate: GateRun, rows: Sequence[Contribution]) -> Check:
    """Whether each version was shown as often as its slot's design says."""
    found = [p for _row, p in balance(rows, gate.summary.get("randomised"))]
    if not found:
        return Check("balance", _("Balance per slot"), formats.UNKNOWN, None)
    smallest = min(found)
    detail = _("smallest p %(p)s of %(n)s") % {
        "p": formats.rate(smallest, 2 if smallest >= 0.01 else 4),
        "n": formats.count(len(found)),
    }
    return Check("balance", _("Balance per slot"), detail, smallest >= UNBALANCED_P)


def balance(
    rows: Sequence[Contribution], randomised: Mapping[str, Sequence[int]] | None = None
) -> list[tuple[Contribution, float]]:
    """Each version with the two-sided p of its inclusion count (normal approximation).

    A slot of m versions shows each, or none, with probability 1 / (m + 1). ``randomised`` gives
    the counts (with, without) of the rollouts in which the slot was still randomised, where an
    earlier look may have fixed it.
    """
    versions = Counter(row.logical_chunk_id for row in rows)
    found = []
    for row in rows:
        counts = row.with_n, row.without_n
        shown, hidden = (randomised or {}).get(row.intervention_id, counts)
        n = shown + hidden
        if n:
            share = 1 / (versions[row.logical_chunk_id] + 1)
            z = (shown - n * share) / math.sqrt(n * share * (1 - share))
            found.append((row, math.erfc(abs(z) / math.sqrt(2))))
    return found
