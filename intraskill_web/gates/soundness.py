"""Checks of a gate's design and record: identity, pairwise balance, condition, refit.

They go with those of ``health``. What the files of an imported gate do not hold is unknown, never
passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from intraskill_web.core import formats
from intraskill_web.gates.evidence import Evidence
from intraskill_web.gates.health import UNBALANCED_P, Check
from intraskill_web.gates.models import GateRun
from trainer.errors import InputError
from trainer.files import read_json

CONDITION_LIMIT = 30.0  # beyond it columns are close to collinear
REFIT_TOLERANCE = 1e-12


def design_checks(gate: GateRun, evidence: Evidence | None) -> list[Check]:
    """Four checks in a fixed order; reads the gate's manifest."""
    design: Mapping[str, Any] = evidence.design if evidence else gate.summary.get("design") or {}
    return [_pairs(gate, design), _condition(design), _refit(gate, evidence), _identity(gate)]


def _pairs(gate: GateRun, design: Mapping[str, Any]) -> Check:
    """The least likely pair, judged among all pairs; earlier looks fix slots and void the sum."""
    label = _("Balance of pairs")
    p = design.get("pair_p")
    if p is None or gate.summary.get("looks"):
        return Check("pairs", label, formats.UNKNOWN, None)
    detail = _("smallest p %(p)s of %(n)s") % {
        "p": formats.rate(p, 2 if p >= 0.01 else 5),
        "n": formats.count(design["pairs"]),
    }
    return Check("pairs", label, detail, p * design["pairs"] >= UNBALANCED_P)


def _condition(design: Mapping[str, Any]) -> Check:
    found = design.get("condition_number")
    label = _("Condition number")
    if found is None:
        return Check("condition", label, formats.UNKNOWN, None)
    detail = _("%(value)s, limit %(limit)s") % {"value": f"{found:.2f}", "limit": CONDITION_LIMIT}
    return Check("condition", label, detail, found <= CONDITION_LIMIT)


def _refit(gate: GateRun, evidence: Evidence | None) -> Check:
    """Fitted again from the observations; else the error that the publisher recorded."""
    error = evidence.refit_error if evidence else gate.summary.get("refit_error")
    label = _("Refit")
    if error is None:
        return Check("refit", label, formats.UNKNOWN, None)
    text = _("largest difference %(error)s") if evidence else _("recorded: %(error)s")
    return Check("refit", label, text % {"error": f"{error:.1e}"}, error <= REFIT_TOLERANCE)


def _identity(gate: GateRun) -> Check:
    """Masked and bare rollouts by one checkpoint, on the validation split."""
    label = _("Bare and masked alike")
    file = gate.round.experiment.folder / gate.path / "online_gate_manifest.json"
    try:
        manifest = read_json(file)
        masked = manifest["input"]["model"]["checkpoint_id"]
        bare = manifest["input"]["bare_baseline"]["checkpoint_id"]
        split = manifest["protocol"]["split"]
    except (InputError, KeyError, TypeError):
        return Check("identity", label, formats.UNKNOWN, None)
    if bare is None:
        return Check("identity", label, formats.UNKNOWN, None)
    text = (
        _("both %(a)s, split %(split)s")
        if bare == masked
        else _("%(a)s and %(b)s, split %(split)s")
    )
    detail = text % {"a": bare, "b": masked, "split": split}
    return Check("identity", label, detail, bare == masked and split == "val")
