"""From the events about one thing to what a page shows. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext_lazy as _

from intraskill_web.core.labels import Words
from intraskill_web.review.models import ReviewEvent

LABELS: Words = {
    "internalised": _("internalised"),
    "bad wording": _("bad wording"),
    "needs more data": _("needs more data"),
    "ready": _("ready"),
}


@dataclass(frozen=True, slots=True)
class Standing:
    """Labels in the order they were given; the sign-off that stands, if any.

    ``outdated``: what was signed is no longer what is shown.
    """

    events: Sequence[ReviewEvent] = ()
    labels: list[str] = field(default_factory=list)
    signed: ReviewEvent | None = None
    outdated: bool = False

    def data(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "labels": self.labels,
            "signed": None
            if self.signed is None
            else {
                "by": name_of(self.signed),
                "at": self.signed.at,
                "note": self.signed.text,
                "outdated": self.outdated,
            },
            "events": [
                {"kind": e.kind, "text": e.text, "by": name_of(e), "at": e.at} for e in self.events
            ],
        }


def standing(events: Iterable[ReviewEvent], evidence: str) -> Standing:
    """Fold the events, oldest first; ``evidence`` is that of what is shown now."""
    found = list(events)
    labels: list[str] = []
    signed: ReviewEvent | None = None
    for event in found:
        if event.kind == "label" and event.text not in labels:
            labels.append(event.text)
        elif event.kind == "unlabel" and event.text in labels:
            labels.remove(event.text)
        elif event.kind in ("sign", "unsign"):
            signed = event if event.kind == "sign" else None
    outdated = signed is not None and signed.evidence != evidence
    return Standing(found, labels, signed, outdated)


def name_of(event: ReviewEvent) -> str:
    """Who said it; empty when the account is gone."""
    return event.author.get_username() if event.author else ""
