"""The signal strip: what needs a look now, and what was checked and is quiet.

Rules of the project's monitoring guide; each names the episodes behind it. Open signals come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from intraskill_web.core import formats
from intraskill_web.experiments.models import Attempt, Stage
from intraskill_web.monitoring.inclusion import SKILL_FREE, InclusionRow, StepCount
from intraskill_web.monitoring.panels.base import RoundData
from intraskill_web.monitoring.statistics import binomial_band
from jobs.transitions import State

WINDOWS = 3  # steps in a row that the cumulative rate must be outside its band


@dataclass(frozen=True, slots=True)
class Signal:
    """``level``: open (needs a look), info (waits for someone), ok (checked and quiet).

    ``moment`` is when it last happened; pages say how long ago.
    """

    level: str
    title: str
    detail: str = ""
    href: str = ""
    link: str = ""
    moment: datetime | None = None


def round_signals(
    data: RoundData,
    rows: Sequence[InclusionRow],
    stages: Sequence[Stage],
    attempts: Sequence[Attempt],
) -> list[Signal]:
    """All signals of a round, open ones first."""
    signals = [
        *_failed(stages, attempts),
        *_unscored(data),
        *_technical(data),
        *_inclusion(data, rows),
        *_stalled(data, stages),
    ]
    order = {"open": 0, "info": 1, "ok": 2}
    return sorted(signals, key=lambda signal: order[signal.level])


def _failed(stages: Sequence[Stage], attempts: Sequence[Attempt]) -> list[Signal]:
    latest = {attempt.stage_id: attempt for attempt in attempts}
    bad = (State.FAILED, State.LOST, State.INCOMPLETE)
    title = _("%(stage)s: %(state)s")
    return [
        Signal(
            "open",
            title % {"stage": stage.get_kind_display(), "state": stage.get_state_display()},
            stage.message,
            reverse("experiments:attempt", args=[latest[stage.pk].pk])
            if stage.pk in latest
            else "",
            _("Log and cause"),
        )
        for stage in stages
        if stage.state in bad
    ]


def _unscored(data: RoundData) -> list[Signal]:
    tally = data.rollouts.tally()
    if not tally.episodes:
        return []
    missing = tally.episodes - tally.scored
    rate = formats.rate(tally.scored / tally.episodes)
    if not missing:
        return [Signal("ok", _("Scored"), rate)]
    return [
        Signal(
            "open",
            _("Not all episodes are scored:"),
            _("%(rate)s of %(n)s") % {"rate": rate, "n": formats.count(tally.episodes)},
            data.episodes(scored="no"),
            _("%(n)s episodes") % {"n": formats.count(missing)},
        )
    ]


def _technical(data: RoundData) -> list[Signal]:
    drops = sum(data.series.get("technical_group_drop_count").values())
    if not data.series.get("group_count"):
        return []
    if not drops:
        return [Signal("ok", _("Technical drops"), "0")]
    return [
        Signal(
            "open",
            _("Technical drops:"),
            _("%(n)s groups in this round") % {"n": formats.count(round(drops))},
            data.episodes(scored="no"),
            _("Episodes"),
        )
    ]


def _inclusion(data: RoundData, rows: Sequence[InclusionRow]) -> list[Signal]:
    out = []
    for row in rows:
        side = lasting(row.counts, row.target)
        if not side or row.observed is None or row.band is None:
            continue
        free = row.skill_id == SKILL_FREE
        name = _("Skill-free rate") if free else data.titles.get(row.skill_id, row.skill_id)
        words = _("below its band") if side == "below" else _("above its band")
        out.append(
            Signal(
                "open",
                _("%(name)s %(side)s:") % {"name": name, "side": words},
                _("%(seen)s, target %(target)s (%(low)s–%(high)s)")
                % {
                    "seen": formats.rate(row.observed),
                    "target": formats.rate(row.target),
                    "low": formats.rate(row.band[0]),
                    "high": formats.rate(row.band[1]),
                },
                data.episodes(**({"treatment": "skill_free"} if free else {"chunk": row.skill_id})),
                _("%(n)s groups") % {"n": formats.count(row.shown)},
            )
        )
    if not out and any(row.n for row in rows):
        return [Signal("ok", _("Inclusion"), _("in band"))]
    return out


def lasting(counts: Sequence[StepCount], target: float, windows: int = WINDOWS) -> str:
    """``below`` or ``above`` when the cumulative rate left its band on that side and stayed out.

    One step outside is what a 95 % band lets happen; the last ``windows`` steps in a row are not.
    """
    if len(counts) < windows:
        return ""
    sides = set()
    for end in range(len(counts) - windows + 1, len(counts) + 1):
        shown, n = sum(c.shown for c in counts[:end]), sum(c.n for c in counts[:end])
        low, high = binomial_band(n, target)
        sides.add("below" if shown / n < low else "above" if shown / n > high else "")
    return sides.pop() if len(sides) == 1 else ""


def _stalled(data: RoundData, stages: Sequence[Stage]) -> list[Signal]:
    """No step for three times the median step time, while training runs."""
    train = next((s for s in stages if s.kind == "train"), None)
    seconds = sorted(data.series.get("perf/step_time").values())
    if train is None or train.state != State.RUNNING or len(seconds) < 3:
        return []
    median = seconds[len(seconds) // 2]
    age = (timezone.now() - train.updated_at).total_seconds()
    if age <= max(3 * median, 30):
        return [Signal("ok", _("Last step"), moment=train.updated_at)]
    usual = _("usually %(t)s a step; the last") % {"t": formats.duration(median)}
    return [Signal("open", _("No new step:"), usual, moment=train.updated_at)]
