"""Run health: whether the numbers above may be believed, each with its denominator and history."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from intraskill_web.charts.rows import sparkline
from intraskill_web.charts.svg import Markup
from intraskill_web.core import formats
from intraskill_web.core.tables import Column, Table
from intraskill_web.monitoring.panels.base import Panel, RoundData
from intraskill_web.monitoring.statistics import outliers


@dataclass(frozen=True, slots=True)
class HealthRow:
    """One signal of health at the newest step."""

    key: str
    label: str
    detail: str
    text: str
    href: str
    help: str
    spark: Markup
    good: bool


def health(data: RoundData) -> Panel:
    """The panel at the newest step; each row has the history of this round beside it."""
    step = data.step
    rows = [] if step is None else _rows(data, step)
    keys = {
        "scored_rate": _("Scored rate"),
        "technical_group_drop_count": _("Technical drops"),
        "zero_std_group_drop_rate": _("Zero-spread drop rate"),
        "protocol_error_rate": _("Protocol errors a turn"),
        "step_seconds": _("Step time"),
        "tokens_per_second": _("Sampled tokens / s"),
    }
    columns = [Column("step", _("Step"), "count")]
    columns += [Column(key, label, "number") for key, label in keys.items()]
    history = {key: _history(data, key) for key in keys}
    table = Table(
        name="health",
        columns=columns,
        rows=[
            {"step": s, **{key: points.get(s) for key, points in history.items()}}
            for s in data.series.steps
        ],
    )
    return Panel("health", table, None, {"rows": rows, "step": step})


def _rows(data: RoundData, step: int) -> list[HealthRow]:
    at = data.series.at
    episodes = at("trajectory_count", step)
    scored = at("scored_rate", step)
    zero = at("zero_std_group_drop_count", step) or 0.0
    kept = at("train_group_count", step) or 0.0
    turns = at("turn_count", step)
    errors = at("protocol_error_rate", step)
    drops = at("technical_group_drop_count", step) or 0.0
    seconds = _history(data, "step_seconds")
    speed = _history(data, "tokens_per_second").get(step)
    recent = [seconds[s] for s in sorted(seconds)][-5:]
    last_drop = max(
        (s for s, v in _history(data, "technical_group_drop_count").items() if v), default=None
    )
    return [
        HealthRow(
            "scored_rate",
            _("Scored rate"),
            _("%(k)s of %(n)s episodes") % {"k": _count(scored, episodes), "n": _whole(episodes)},
            formats.rate(scored),
            data.episodes(step=step, scored="no")
            if scored is not None and scored < 1
            else data.episodes(step=step),
            "scored_rate",
            _spark(data, "scored_rate"),
            scored is None or scored >= 1,
        ),
        HealthRow(
            "technical_drops",
            _("Technical drops"),
            _("groups; last at step %(s)d") % {"s": last_drop}
            if last_drop
            else _("groups; none in this round"),
            _whole(drops),
            data.episodes(step=step, scored="no") if drops else "",
            "technical_drops",
            _spark(data, "technical_group_drop_count"),
            drops == 0,
        ),
        HealthRow(
            "zero_spread",
            _("Zero-spread drop rate"),
            _("%(k)s dropped, %(n)s kept") % {"k": _whole(zero), "n": _whole(kept)},
            formats.rate(at("zero_std_group_drop_rate", step) or 0.0),
            data.episodes(step=step, admitted="no"),
            "zero_spread",
            _spark(data, "zero_std_group_drop_rate"),
            True,
        ),
        HealthRow(
            "protocol_errors",
            _("Protocol errors a turn"),
            _("%(k)s of %(n)s turns") % {"k": _count(errors, turns), "n": _whole(turns)},
            formats.rate(errors),
            data.episodes(step=step, errors="1"),
            "protocol_errors",
            _spark(data, "protocol_error_rate"),
            True,
        ),
        HealthRow(
            "step_time",
            _("Step time"),
            _("median of the last 5: %(t)s") % {"t": formats.duration(_median(recent))},
            formats.duration(seconds.get(step)),
            "",
            "step_time",
            _spark(data, "step_seconds"),
            True,
        ),
        HealthRow(
            "throughput",
            _("Sampled tokens / s"),
            pgettext("throughput", "rollout only"),
            formats.count(round(speed)) if speed is not None else formats.UNKNOWN,
            "",
            "throughput",
            _spark(data, "tokens_per_second"),
            True,
        ),
    ]


def _history(data: RoundData, key: str) -> dict[int, float]:
    """A series of this round. Absent drop counts are zeros: they are logged only when there are
    some.
    """
    if key in ("technical_group_drop_count", "zero_std_group_drop_rate"):
        logged = data.series.get(key)
        return {s: logged.get(s, 0.0) for s in data.series.get("group_count")}
    if key == "step_seconds":
        return dict(data.series.get("perf/step_time"))
    if key == "tokens_per_second":
        tokens, seconds = (
            data.series.get("sampled_token_count"),
            data.series.get("perf/rollout_time"),
        )
        return {s: tokens[s] / seconds[s] for s in tokens if seconds.get(s)}
    return dict(data.series.get(key))


def _spark(data: RoundData, key: str) -> Markup:
    points = _history(data, key)
    values = [points[s] for s in sorted(points)]
    return sparkline(values, outside=outliers(values))


def _whole(value: float | None) -> str:
    return formats.count(None if value is None else round(value))


def _count(rate: float | None, n: float | None) -> str:
    return formats.UNKNOWN if rate is None or n is None else formats.count(round(rate * n))


def _median(values: list[float]) -> float | None:
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else None
