"""Failure frontier: groups without a success, and whether the full skill helped them."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _

from intraskill_web.charts.panel import Frame, Stack, bar_panel
from intraskill_web.charts.scale import whole_ticks, widen
from intraskill_web.charts.svg import Markup
from intraskill_web.core.tables import Column, Table
from intraskill_web.episodes.links import episodes_url
from intraskill_web.monitoring.panels.base import Panel, RoundData
from intraskill_web.monitoring.rollouts import ALL_WRONG, RETRY_FAILED, RETRY_SUCCEEDED

EARLIER = 40  # steps of earlier rounds that are drawn, pale


def frontier(data: RoundData) -> Panel:
    """The panel. A retry failed when its triage waits for analysis."""
    wrong = data.rollouts.by_step(lambda c: c.triage in ALL_WRONG)
    failed = data.rollouts.by_step(lambda c: c.triage == RETRY_FAILED)
    helped = data.rollouts.by_step(lambda c: c.triage == RETRY_SUCCEEDED)
    groups = data.rollouts.by_step()
    table = Table(
        name="frontier",
        columns=[
            Column("step", _("Step"), "count"),
            Column("groups", _("Groups"), "count"),
            Column("all_wrong", _("All wrong"), "count"),
            Column("retry_failed", _("Retry failed"), "count"),
            Column("retry_succeeded", _("Retry succeeded"), "count"),
        ],
        rows=[
            {
                "step": step,
                "groups": groups[step].groups,
                "all_wrong": wrong[step].groups,
                "retry_failed": failed[step].groups,
                "retry_succeeded": helped[step].groups,
                "_href": data.episodes(step=step),
            }
            for step in groups
        ],
    )
    before = _earlier(data)
    facts = {
        "all_wrong": sum(t.groups for t in wrong.values()),
        "retry_failed": sum(t.groups for t in failed.values()),
        "retry_succeeded": sum(t.groups for t in helped.values()),
        "groups": sum(t.groups for t in groups.values()),
        "earlier_wrong": sum(bar.failed + bar.helped for bar in before),
        "earlier_groups": sum(bar.groups for bar in before),
        "href_failed": data.episodes(triage=RETRY_FAILED),
        "href_helped": data.episodes(triage=RETRY_SUCCEEDED),
        "href_retries": data.episodes(purpose="retry"),
    }
    bars = before + [
        Bar(step, failed[step].groups, helped[step].groups, groups[step].groups) for step in groups
    ]
    drawn = bars if groups and any(bar.failed + bar.helped for bar in bars) else []
    return Panel("frontier", table, _chart(data, drawn) if drawn else None, facts)


@dataclass(frozen=True, slots=True)
class Bar:
    """The groups of one step that failed whole, by what the retry did."""

    step: int
    failed: int
    helped: int
    groups: int


def _earlier(data: RoundData) -> list[Bar]:
    """The last EARLIER steps of the rounds before, from their logged rates."""
    series = data.earlier
    counts = {**series.get("group_count"), **series.get("triaged_group_count")}
    pending = series.get("pending_analysis_rate")
    deficit = series.get("internalization_deficit_rate")
    return [
        Bar(
            step,
            round(pending[step] * counts[step]),
            round(deficit.get(step, 0.0) * counts[step]),
            round(counts[step]),
        )
        for step in sorted(pending)
        if step in counts and data.first_step - EARLIER <= step < data.first_step
    ]


def _chart(data: RoundData, bars: list[Bar]) -> Markup:
    high = max(4.0, widen([0.0, float(max(bar.failed + bar.helped for bar in bars))])[1])
    frame = Frame(
        x_range=(bars[0].step - 1, float(data.last_step) + 1),
        x_ticks=whole_ticks(float(bars[0].step), float(data.last_step)),
        y_range=(0.0, high),
        height=188,
        y_decimals=0,
        title=_("All-wrong groups by step; hatched: the retry with the full skill succeeded."),
        dividers=data.divider() if bars[0].step < data.first_step else (),
    )
    return bar_panel(frame, [_stack(data, bar) for bar in bars])


def _stack(data: RoundData, bar: Bar) -> Stack:
    """The bar of a step; of an earlier round it is pale and leads to that step all the same."""

    def href(triage: str) -> str:
        return episodes_url(
            experiment=data.experiment, step=bar.step, purpose="train", triage=triage
        )

    failed = _("Step %(s)d: %(n)d all wrong, retry failed") % {"s": bar.step, "n": bar.failed}
    helped = _("Step %(s)d: %(n)d all wrong, retry succeeded") % {"s": bar.step, "n": bar.helped}
    return Stack(
        bar.step,
        [
            (bar.failed, "b1", href(RETRY_FAILED), failed),
            (bar.helped, "b2", href(RETRY_SUCCEEDED), helped),
        ],
        pale=bar.step < data.first_step,
    )
