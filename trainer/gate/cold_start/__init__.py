"""The cold-start gate ("Gate A"): the first selection, from a draft instead of an active skill.

A draft has up to 16 chunks and no current version of anything, so every chunk is its own slot and
each is shown with probability one half. It differs from the round's gate in the draw (a fair bit of
the same kind of hash, not a modulus), in its schemas, and in that nothing can be retired.
Observing, pairing and fitting are the same. Specification: gate-analysis.md §10.

``draft``      what is judged, read from the analyst's files
``design``     who sees what
``documents``  what is written down
``run``        the stage: ``python -m trainer gate run`` with ``stage: cold_start_gate``
"""

from __future__ import annotations

from trainer.gate.cold_start.design import assignment_document, draw_assignments, draw_bit
from trainer.gate.cold_start.documents import (
    active_bank,
    contribution_rows,
    contributions_csv,
    control_bank,
    select_draft,
)
from trainer.gate.cold_start.draft import Draft, load_draft, parse_draft

__all__ = [
    "Draft",
    "active_bank",
    "assignment_document",
    "contribution_rows",
    "contributions_csv",
    "control_bank",
    "draw_assignments",
    "draw_bit",
    "load_draft",
    "parse_draft",
    "select_draft",
]
