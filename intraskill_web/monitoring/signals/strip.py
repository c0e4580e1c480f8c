"""The signal strip of a round: what needs a look now, and what was checked and is quiet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from intraskill_web.core import formats
from intraskill_web.monitoring.models import SignalEvent
from intraskill_web.monitoring.signals.facts import Facts, Finding
from intraskill_web.monitoring.signals.rules import findings
from intraskill_web.monitoring.signals.training import RECENT, WINDOWS, usual_step
from intraskill_web.monitoring.signals.words import Place, words
from jobs.transitions import State

Events = Mapping[tuple[str, str], SignalEvent]


@dataclass(frozen=True, slots=True)
class Signal:
    """``level``: open (needs a look), info (waits for someone), ok (checked and quiet).

    ``moment`` is when it last happened, ``since`` when it opened; ``event`` is its row in the
    inbox, if it has one, and ``seen`` whether the reader marked it.
    """

    level: str
    title: str
    detail: str = ""
    href: str = ""
    link: str = ""
    moment: datetime | None = None
    kind: str = ""
    event: int | None = None
    since: datetime | None = None
    seen: bool = False


def round_signals(facts: Facts, events: Events | None = None) -> list[Signal]:
    """All signals of a round, open ones first; what only waits is left out once it was seen, and
    of an imported round, whose review nobody waits for.
    """
    found = findings(facts)
    place = Place(facts.data.experiment, facts.data.round.number)
    shown = [_signal(item, place, (events or {}).get(item.key)) for item in found]
    shown = [s for s in shown if s.level != "info" or (facts.attempts and not s.seen)]
    order = {"open": 0, "info": 1}
    shown.sort(key=lambda signal: (order[signal.level], signal.seen))
    return shown + _quiet(facts, {item.kind for item in found})


def _signal(item: Finding, place: Place, event: SignalEvent | None) -> Signal:
    said = words(item.kind, item.subject, item.facts, place)
    return Signal(
        level=item.level,
        title=said.title,
        detail=said.detail,
        href=said.href,
        link=said.link,
        moment=item.moment,
        kind=item.kind,
        event=event.pk if event else None,
        since=event.opened_at if event else None,
        seen=bool(event and getattr(event, "seen", False)),
    )


def _quiet(facts: Facts, loud: set[str]) -> list[Signal]:
    """What was looked at and is as it should be."""
    series = facts.data.series
    out: list[Signal] = []
    if series.get("scored_rate") and "unscored" not in loud:
        tally = facts.data.rollouts.tally()
        if tally.episodes:
            rate = formats.rate(tally.scored / tally.episodes)
            out.append(Signal("ok", _("Scored"), rate, kind="unscored"))
    if series.get("group_count") and "technical" not in loud:
        drops = round(sum(series.get("technical_group_drop_count").values()))
        text = formats.count(drops)
        if drops:
            text = _("%(n)s, none in the last %(m)d steps") % {"n": text, "m": RECENT}
        out.append(Signal("ok", _("Technical drops"), text, kind="technical"))
    if any(row.n for row in facts.rows) and not loud & {"inclusion", "skill_free"}:
        out.append(Signal("ok", _("Inclusion"), _in_band(facts), kind="inclusion"))
    train = facts.stage("train")
    working = train is not None and train.state == State.RUNNING
    if train is not None and working and usual_step(facts.data) and "stalled" not in loud:
        out.append(Signal("ok", _("Last step"), moment=train.updated_at, kind="stalled"))
    return out


def _in_band(facts: Facts) -> str:
    """What the panel says of the same rows; the rule is about rates that stay outside."""
    outside = sum(row.verdict in ("below", "above") for row in facts.rows)
    if not outside:
        return _("in band")
    return _("%(n)d of %(of)d outside its band, none for %(m)d steps") % {
        "n": outside,
        "of": len(facts.rows),
        "m": WINDOWS,
    }
