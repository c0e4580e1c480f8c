"""The tasks behind one effect: those whose masked rollout showed the chunk, or did not.

As paired episodes, the largest residual first: where the fit explains least is where to look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext as _

from intraskill_web.core.tables import Column, Table
from intraskill_web.episodes.models import Episode
from intraskill_web.gates.evidence import Evidence, Observation
from intraskill_web.gates.models import GateRun

PAGE = 50
PURPOSES = ("bare", "masked")


@dataclass(slots=True)
class Pair:
    """One task with its episodes of both runs."""

    seen: Observation
    bare: list[Episode] = field(default_factory=list)
    masked: list[Episode] = field(default_factory=list)

    @property
    def instruction(self) -> str:
        """What the task asks for."""
        return next((e.instruction for e in (*self.masked, *self.bare)), "")


def matching(evidence: Evidence, chunk: str, shown: bool) -> list[Observation]:
    """Tasks with the version present or absent, largest residual first."""
    found = [o for o in evidence.observations if (chunk in o.shown) == shown]
    return sorted(found, key=lambda o: (-abs(o.residual), o.task_id))


def paired(gate: GateRun, seen: Sequence[Observation]) -> list[Pair]:
    """The episodes of these tasks: one query."""
    made = {o.task_id: Pair(o) for o in seen}
    rows = Episode.objects.filter(
        round=gate.round, purpose__in=PURPOSES, task_id__in=list(made)
    ).order_by("task_id", "sample_id", "id")
    for episode in rows:
        pair = made[episode.task_id]
        (pair.bare if episode.purpose == "bare" else pair.masked).append(episode)
    return list(made.values())


def tasks_table(pairs: Sequence[Pair]) -> Table:
    """The numbers of the page."""
    columns = [
        Column("task_id", _("Task"), "mono"),
        Column("bare", _("Bare"), "rate"),
        Column("masked", _("Masked"), "rate"),
        Column("difference", _("Difference"), "effect"),
        Column("fitted", _("Fitted"), "effect"),
        Column("residual", _("Residual"), "effect"),
        Column("instruction", _("Request")),
    ]
    return Table(
        "tasks",
        columns,
        [
            {
                "task_id": pair.seen.task_id,
                "bare": pair.bare[0].reward if pair.bare else None,
                "masked": pair.masked[0].reward if pair.masked else None,
                "difference": pair.seen.difference,
                "fitted": pair.seen.fitted,
                "residual": pair.seen.residual,
                "instruction": pair.instruction,
            }
            for pair in pairs
        ],
    )


def tasks_url(name: str, number: int, profile: str, chunk: str, shown: bool) -> str:
    """The address of the tasks behind one number."""
    query = urlencode({"profile": profile, "chunk": chunk, "shown": "yes" if shown else "no"})
    return reverse("gates:tasks", args=[name, number]) + f"?{query}"
