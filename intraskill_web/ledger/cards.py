"""Failure cards of a round as readers may see them.

A card's privileged part knows the private goal of its task: it is shown only to who holds
``ledger.see_privileged``, marked as such, and is in no export unless one who may asks for it.
What is deployable is for everybody. The file is ``analysis/failure_cards.jsonl``; of several lines
of one source the last counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from intraskill_web.core.labels import Words
from intraskill_web.core.tables import Column, Table
from intraskill_web.experiments.models import Round
from trainer.errors import InputError
from trainer.files import read_jsonl

FILE = "analysis/failure_cards.jsonl"
PRIVILEGED = ("privileged_audit", "terminal_trials", "audit_action_summary", "audit_transcript",
              "firewall_evidence")  # fmt: skip
STATUSES: Words = {
    "PROPOSE_ADD": gettext_lazy("proposes an addition"),
    "PROPOSE_REWRITE": gettext_lazy("proposes a rewrite"),
    "NO_PROPOSAL": gettext_lazy("no proposal"),
    "ANALYST_ERROR": gettext_lazy("analyst failed"),
}
FIELDS: Words = {
    "failure_mechanism": gettext_lazy("Mechanism"),
    "applicable_when": gettext_lazy("Applies when"),
    "observable_trigger": gettext_lazy("Trigger"),
    "corrective_procedure": gettext_lazy("Procedure"),
    "verification_step": gettext_lazy("Verification"),
    "proposed_content": gettext_lazy("Proposed text"),
    "target_chunk_id": gettext_lazy("Target"),
    "failure_surface": gettext_lazy("Surface of the failure"),
    "earliest_divergence": gettext_lazy("Earliest divergence"),
    "oracle_comparison": gettext_lazy("Comparison with the goal"),
    "replay_evidence": gettext_lazy("Replay"),
    "minimal_repair": gettext_lazy("Smallest repair"),
    "repair_validation_result": gettext_lazy("Result of the repair"),
    "gold_asin": gettext_lazy("Wanted product"),
    "chosen_asin": gettext_lazy("Bought product"),
}


@dataclass(frozen=True, slots=True)
class Card:
    """One line of the file, split into what everybody may see and the rest."""

    row: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The card's id; of an error, the source's."""
        return str(self.row.get("card_id") or self.row["source_trajectory_id"])

    @property
    def status(self) -> str:
        """One of STATUSES."""
        return str(self.row.get("status", ""))

    @property
    def source(self) -> str:
        """The episode that was analysed."""
        return str(self.row["source_trajectory_id"])

    @property
    def trigger(self) -> str:
        """Why its group was analysed; published cards come from failed retries alone."""
        return str(self.row.get("trigger") or "all_wrong")

    @property
    def eligible(self) -> bool:
        """Whether the compiler may use it."""
        return bool(self.row.get("eligible_for_consolidation"))

    @property
    def reasons(self) -> list[str]:
        """Why a proposal was taken back."""
        return [str(r) for r in self.row.get("forced_no_proposal_reasons") or []]

    def deployable(self) -> list[tuple[str, str, str]]:
        """(key, what to call it, text), known fields first."""
        return _fields(self.row.get("deployable_abstraction"))

    def privileged(self) -> list[tuple[str, str, str]]:
        """The privileged audit in the same form."""
        return _fields(self.row.get("privileged_audit"))

    def data(self, *, privileged: bool) -> dict[str, Any]:
        """For JSON: without the privileged parts unless they are asked for and allowed."""
        return {k: v for k, v in self.row.items() if privileged or k not in PRIVILEGED}


def _fields(value: Any) -> list[tuple[str, str, str]]:
    if not isinstance(value, Mapping):
        return []
    order = {key: place for place, key in enumerate(FIELDS)}
    keys = sorted(value, key=lambda k: (order.get(k, len(order)), str(k)))
    return [(k, str(FIELDS.get(k, k)), str(value[k])) for k in keys if value[k] not in (None, "")]


def cards(round_: Round) -> list[Card] | None:
    """All cards by source; None where the file is not here or is broken."""
    path = round_.folder / FILE
    if not path.is_file():
        return None
    try:
        latest = {str(row["source_trajectory_id"]): row for row in read_jsonl(path)}
    except (InputError, KeyError):
        return None
    return [Card(latest[source]) for source in sorted(latest)]


def counts(found: Sequence[Card]) -> list[tuple[str, str, int]]:
    """(status, word, how many), the most frequent first."""
    numbers = Counter(card.status for card in found)
    return [(s, str(STATUSES.get(s, s)), n) for s, n in numbers.most_common()]


def triggers(found: Sequence[Card]) -> dict[str, int]:
    """How many of them each trigger brought, in the order of its name."""
    return dict(sorted(Counter(card.trigger for card in found).items()))


def table(found: Sequence[Card]) -> Table:
    """The deployable side as data."""
    columns = [
        Column("card_id", _("Card"), "mono"),
        Column("status", _("Status")),
        Column("trigger", _("Analysed because")),
        Column("eligible", _("Eligible")),
        Column("source_trajectory_id", _("Episode"), "mono"),
        Column("task_id", _("Task"), "mono"),
        Column("failure_mechanism", _("Mechanism")),
        Column("reasons", _("Taken back because")),
    ]
    return Table(
        "cards",
        columns,
        [
            {
                "card_id": card.id,
                "status": card.status,
                "trigger": card.trigger,
                "eligible": card.eligible,
                "source_trajectory_id": card.source,
                "task_id": card.row.get("task_id"),
                "failure_mechanism": (card.row.get("deployable_abstraction") or {}).get(
                    "failure_mechanism", ""
                ),
                "reasons": ", ".join(card.reasons),
            }
            for card in found
        ],
    )
