"""What every panel of a round is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.urls import reverse

from intraskill_web.charts.panel import Divider
from intraskill_web.charts.svg import Markup
from intraskill_web.core.tables import Table
from intraskill_web.episodes.links import episodes_url
from intraskill_web.experiments.models import Round
from intraskill_web.monitoring.rollouts import Rollouts
from intraskill_web.monitoring.series import Series

# metrics of earlier rounds: those that a panel shows, pale, and what a step usually takes
EARLIER_NAMES = (
    "success_rate",
    "strict_reward_mean",
    "pending_analysis_rate",
    "internalization_deficit_rate",
    "triaged_group_count",
    "group_count",
    "perf/step_time",
)


@dataclass(frozen=True, slots=True)
class RoundData:
    """One round's facts, read once and shared by its panels.

    ``first_step`` and ``last_step`` are the planned ones; ``series`` holds this round, ``earlier``
    outcome, frontier and step times of the rounds before it; ``titles`` are the chunks' by logical
    id.
    """

    round: Round
    first_step: int
    last_step: int
    series: Series
    earlier: Series
    rollouts: Rollouts
    titles: Mapping[str, str] = field(default_factory=dict)

    @property
    def experiment(self) -> str:
        """The experiment's name."""
        return self.round.experiment.name

    @property
    def step(self) -> int | None:
        """The newest finished step of this round."""
        last = self.series.last("success_rate") or self.series.last("group_count")
        return last[0] if last else None

    def episodes(self, **filters: Any) -> str:
        """The address of this round's training episodes that match ``filters``."""
        filters.setdefault("purpose", "train")
        return episodes_url(experiment=self.experiment, round=self.round.number, **filters)

    def divider(self) -> tuple[Divider, ...]:
        """The border to the round before, for panels over steps."""
        from django.utils.translation import gettext as _

        if not self.earlier.steps:
            return ()
        word = _("round %(n)s")
        return (
            Divider(
                self.first_step - 0.5,
                word % {"n": self.round.number - 1},
                word % {"n": self.round.number},
            ),
        )


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel: the drawing (None: nothing to draw yet), its table twin, and what the template
    shows.
    """

    key: str
    table: Table
    chart: Markup | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


def panel_url(round_: Round, key: str) -> str:
    """The page of a panel's table twin."""
    return reverse("monitoring:panel", args=[round_.experiment.name, round_.number, key])
