"""One button of an experiment, whatever it does."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from intraskill_web.experiments.models import Experiment

RARE = frozenset({"change", "skip", "extend", "until", "hold"})  # behind "More"
CHECKING = _("Checking what the round will read; this takes seconds …")


@dataclass(frozen=True, slots=True)
class Button:
    """One action. ``why`` stands below it: what happens, or why it cannot be done now."""

    key: str
    label: str
    icon: str
    why: str
    enabled: bool
    url: str
    style: str = ""
    confirm: str = ""  # the question of the dialog; empty: no dialog
    is_link: bool = False  # leads to a page where it is done
    keep: str = ""  # how the dialog is left without doing it; empty: "Keep running"
    number: int | None = None  # what to ask for, under the name ``rounds``
    offered: int | None = None  # sent under the name ``rounds`` without asking
    asks_reason: bool = False  # under the name ``reason``
    busy: str | Promise = ""  # what is said while its answer takes seconds

    @property
    def is_rare(self) -> bool:
        return self.key in RARE

    def data(self) -> dict[str, object]:
        """For the JSON twin."""
        return {"action": self.key, "enabled": self.enabled, "why": self.why, "url": self.url}


def act_url(experiment: Experiment, action: str) -> str:
    """Where a button posts to."""
    return reverse("experiments:act", args=[experiment.name, action])
