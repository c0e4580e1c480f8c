"""Outcome: success rate and strict reward by rollout step, and the last step by treatment."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from intraskill_web.charts.panel import Frame, Line, Marker, line_panel
from intraskill_web.charts.scale import rate_range, whole_ticks
from intraskill_web.charts.svg import Markup
from intraskill_web.core import formats
from intraskill_web.core.tables import Column, Table
from intraskill_web.monitoring.panels.base import Panel, RoundData
from intraskill_web.monitoring.rollouts import Cell
from intraskill_web.monitoring.series import merged
from intraskill_web.monitoring.statistics import trailing_mean

WINDOW = 5


@dataclass(frozen=True, slots=True)
class BareScore:
    """Bare validation of the checkpoint behind ``step``."""

    step: int
    success: float
    n: int
    href: str


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """One population of training episodes: the last step, the mean of five, the best step."""

    label: str
    last: float | None
    href: str
    mean: float | None
    best: float | None
    best_step: int | None
    n: int


def outcome(data: RoundData, bare: list[BareScore]) -> Panel:
    """The panel; ``bare`` are the checkpoints' scores to mark on the curve."""
    rows = populations(data)
    steps = data.rollouts.by_step()
    table = Table(
        name="outcome",
        columns=[
            Column("step", _("Step"), "count"),
            Column("episodes", _("Episodes"), "count"),
            Column("scored", _("Scored"), "count"),
            Column("success_rate", _("Success rate"), "rate"),
            Column("reward_mean", _("Mean reward"), "rate"),
            Column("groups", _("Groups"), "count"),
        ],
        rows=[
            {
                "step": step,
                "episodes": tally.episodes,
                "scored": tally.scored,
                "success_rate": tally.success_rate,
                "reward_mean": tally.reward_mean,
                "groups": tally.groups,
                "_href": data.episodes(step=step),
            }
            for step, tally in steps.items()
        ],
    )
    facts = {"rows": rows, "points": len(steps)}
    return Panel("outcome", table, _chart(data, bare), facts)


def populations(data: RoundData) -> list[OutcomeRow]:
    """All finished, assisted, skill-free, and what entered the trainer."""
    wanted = [
        (_("All finished"), lambda c: True, {}),
        (_("Assisted"), lambda c: c.treatment.startswith("assisted"), {"treatment": "assisted"}),
        (_("Skill-free"), lambda c: c.treatment == "skill_free", {"treatment": "skill_free"}),
        (_("In the trainer"), lambda c: bool(c.admitted), {"admitted": "yes"}),
    ]
    return [_population(data, label, keep, query) for label, keep, query in wanted]


def _population(data: RoundData, label: str, keep, query: dict[str, str]) -> OutcomeRow:  # type: ignore[no-untyped-def]
    steps = data.rollouts.by_step(keep)
    rates = [tally.success_rate for tally in steps.values()]
    known = [(rate, step) for step, rate in zip(steps, rates, strict=True) if rate is not None]
    best = max(known, key=lambda item: item[0], default=(None, None))
    last = max(steps, default=None)
    return OutcomeRow(
        label=label,
        last=rates[-1] if rates else None,
        href=data.episodes(step=last, **query) if last is not None else "",
        mean=(trailing_mean(rates, WINDOW) or [None])[-1],
        best=best[0],
        best_step=best[1],
        n=steps[last].episodes if last is not None else 0,
    )


def _chart(data: RoundData, bare: list[BareScore]) -> Markup | None:
    series = merged(data.earlier, data.series)
    success = series.points("success_rate")
    reward = series.points("strict_reward_mean") or series.points("reward_mean")
    if not success:
        return None
    means = list(zip([x for x, _y in success], _means(success), strict=True))
    reward_means = list(zip([x for x, _y in reward], _means(reward), strict=True))
    start = success[0][0]
    left = data.last_step - data.step if data.step is not None else 0
    values = [y for _x, y in success + reward] + [score.success for score in bare]
    frame = Frame(
        x_range=(start - 1.5, float(data.last_step)),
        x_ticks=whole_ticks(max(0.0, start - 1), float(data.last_step)),
        y_range=rate_range(values),
        height=220,
        title=_(
            "Success rate by rollout step, %(first)d to %(last)d: "
            "mean of five from %(from)s to %(to)s."
        )
        % {
            "first": start,
            "last": success[-1][0],
            "from": formats.rate(means[0][1]),
            "to": formats.rate(means[-1][1]),
        },
        note=ngettext("%(n)d step to go", "%(n)d steps to go", left) % {"n": left}
        if left > 0
        else "",
        dividers=data.divider(),
    )
    pale = data.first_step if data.earlier.steps else None
    return line_panel(
        frame,
        [
            Line(success, "l1 raw", pale_before=pale),
            Line(means, "l1", _("success %(v)s") % {"v": formats.rate(means[-1][1], 2)}, pale),
            *(
                [
                    Line(reward, "l2 raw", pale_before=pale),
                    Line(
                        reward_means,
                        "l2",
                        _("reward %(v)s") % {"v": formats.rate(reward_means[-1][1], 2)},
                        pale,
                    ),
                ]
                if reward_means
                else []
            ),
        ],
        markers=[
            Marker(
                s.step,
                s.success,
                "diamond",
                "hollow",
                s.href,
                _("Bare validation after step %(step)d: %(rate)s of %(n)s")
                % {"step": s.step, "rate": formats.rate(s.success), "n": formats.count(s.n)},
            )
            for s in bare
            if s.step >= start - 1
        ],
    )


def _means(points: list[tuple[float, float]]) -> list[float]:
    return [m for m in trailing_mean([y for _x, y in points], WINDOW) if m is not None]


__all__ = ["BareScore", "Cell", "outcome", "populations"]
