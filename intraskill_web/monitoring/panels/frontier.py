"""Failure frontier: groups without a success, and whether the full skill helped them."""

from __future__ import annotations

from django.utils.translation import gettext as _

from intraskill_web.charts.panel import Frame, Stack, bar_panel
from intraskill_web.charts.scale import whole_ticks, widen
from intraskill_web.charts.svg import Markup
from intraskill_web.core.tables import Column, Table
from intraskill_web.monitoring.panels.base import Panel, RoundData
from intraskill_web.monitoring.rollouts import ALL_WRONG, RETRY_FAILED, RETRY_SUCCEEDED, Tally


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
    facts = {
        "all_wrong": sum(t.groups for t in wrong.values()),
        "retry_failed": sum(t.groups for t in failed.values()),
        "retry_succeeded": sum(t.groups for t in helped.values()),
        "groups": sum(t.groups for t in groups.values()),
        "href_failed": data.episodes(triage=RETRY_FAILED),
        "href_helped": data.episodes(triage=RETRY_SUCCEEDED),
        "href_retries": data.episodes(purpose="retry"),
    }
    return Panel("frontier", table, _chart(data, failed, helped) if groups else None, facts)


def _chart(data: RoundData, failed: dict[int, Tally], helped: dict[int, Tally]) -> Markup:
    tops = [failed[s].groups + helped[s].groups for s in failed]
    high = max(4.0, widen([0.0, float(max(tops))])[1])
    frame = Frame(
        x_range=(data.first_step - 1, float(data.last_step) + 1),
        x_ticks=whole_ticks(float(data.first_step), float(data.last_step)),
        y_range=(0.0, high),
        height=188,
        y_decimals=0,
        title=_("All-wrong groups by step; hatched: the retry with the full skill succeeded."),
    )
    return bar_panel(
        frame,
        [
            Stack(
                step,
                [
                    (
                        failed[step].groups,
                        "b1",
                        data.episodes(step=step, triage=RETRY_FAILED),
                        _("Step %(s)d: %(n)d all wrong, retry failed")
                        % {"s": step, "n": failed[step].groups},
                    ),
                    (
                        helped[step].groups,
                        "b2",
                        data.episodes(step=step, triage=RETRY_SUCCEEDED),
                        _("Step %(s)d: %(n)d all wrong, retry succeeded")
                        % {"s": step, "n": helped[step].groups},
                    ),
                ],
            )
            for step in failed
        ],
    )
