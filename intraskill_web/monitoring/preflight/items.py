"""One line of the checklist, and its name in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from intraskill_web.monitoring.preflight.words import worded, worded_remedy

# passed; warning: may start; failed: red; skipped: could not be looked at; pending: not yet
STATES = ("passed", "warning", "failed", "skipped", "pending")

NAMES: Mapping[str, str | Promise] = {
    "plan": _("Plan of the round"),
    "configuration": _("Configuration"),
    "world": _("World and catalogue"),
    "splits": _("Task splits"),
    "split": _("Task split"),
    "skillbank": _("Skill bank"),
    "effects": _("Effects of the first bank"),
    "curriculum": _("Curriculum"),
    "curriculum_of_bank": _("Curriculum and bank belong together"),
    "curriculum_chunks": _("Chunks of curriculum and bank are equal"),
    "contributions": _("Contributions are positive"),
    "tasks": _("Training tasks"),
    "checkpoint": _("Checkpoint"),
    "analyst": _("Analyst"),
    "disk": _("Disk space"),
    "host.disk": _("Disk space"),
    "queue": _("Queue"),
    "workers": _("Workers"),
}


@dataclass(frozen=True, slots=True)
class Item:
    """One check. ``remedy`` says how to mend it when it is not passed."""

    name: str
    state: str
    detail: str
    remedy: str = ""

    @property
    def label(self) -> str:
        """The name in words; a technical name as it is."""
        return str(NAMES.get(self.name, self.name))

    @property
    def found(self) -> str:
        """What was found, in the reader's language."""
        return worded(self.detail, self.remedy)

    @property
    def to_do(self) -> str:
        """How to mend it, in the reader's language."""
        return worded_remedy(self.remedy)

    @property
    def red(self) -> bool:
        """Whether a round must not start with it."""
        return self.state == "failed"

    def data(self) -> dict[str, Any]:
        """For JSON and for the row."""
        return asdict(self)


def item_of(record: Mapping[str, Any]) -> Item:
    """A check as ``trainer check --json`` prints it, of either engine."""
    state = record.get("state")
    detail = str(record.get("detail", ""))
    if state not in STATES:
        if record.get("ok"):
            state = "passed"
        else:
            state = "skipped" if detail.startswith("not checked") else "failed"
    return Item(str(record.get("name", "")), str(state), detail, str(record.get("remedy") or ""))
