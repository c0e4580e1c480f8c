"""Rules about the steps of a training: rates outside their band, trends, faults, a standstill.

They look at the last steps, not at the whole round, so a finding ends when its cause does; and they
say nothing any more once the stage has succeeded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from django.utils import timezone

from intraskill_web.monitoring.inclusion import SKILL_FREE, InclusionRow, StepCount
from intraskill_web.monitoring.panels.base import RoundData
from intraskill_web.monitoring.signals.facts import Facts, Finding
from intraskill_web.monitoring.statistics import binomial_band
from jobs.transitions import State

KINDS = frozenset(
    {"unscored", "technical", "inclusion", "skill_free", "internalisation", "pending", "stalled"}
)
WINDOWS = 3  # steps in a row that a cumulative rate must be outside its band
RECENT = 3  # steps in which a technical fault is news
TREND = 5  # steps of each of the two windows that a rise is judged by
RISE_Z = 1.645  # one-sided 95 %
STALL = 3.0  # times the median step
STALL_MIN_S = 30.0


def findings(facts: Facts) -> Iterator[Finding]:
    """What holds of the round's training now."""
    yield from _unscored(facts.data)
    yield from _technical(facts.data)
    yield from _inclusion(facts.rows, facts.data.titles)
    yield from _internalisation(facts.data)
    yield from _pending(facts)
    yield from _stalled(facts)


def _unscored(data: RoundData) -> Iterator[Finding]:
    scored, counted = data.series.get("scored_rate"), data.series.get("trajectory_count")
    steps = [step for step in sorted(scored)[-RECENT:] if scored[step] < 1]
    if steps:
        last = steps[-1]
        n = round(counted.get(last, 0))
        yield Finding(
            "unscored",
            facts={"rate": scored[last], "missing": round((1 - scored[last]) * n), "n": n,
                   "step": last},
        )  # fmt: skip


def _technical(data: RoundData) -> Iterator[Finding]:
    drops = data.series.get("technical_group_drop_count")
    recent = sorted(data.series.get("group_count"))[-RECENT:]
    steps = [step for step in recent if drops.get(step)]
    if steps:
        yield Finding(
            "technical",
            facts={"groups": round(sum(drops[step] for step in steps)), "step": steps[-1]},
        )


def _inclusion(rows: Sequence[InclusionRow], titles: Mapping[str, str]) -> Iterator[Finding]:
    for row in rows:
        side = lasting(row.counts, row.target)
        if not side or row.observed is None or row.band is None:
            continue
        free = row.skill_id == SKILL_FREE
        yield Finding(
            "skill_free" if free else "inclusion",
            "" if free else row.skill_id,
            facts={
                "side": side,
                "title": "" if free else titles.get(row.skill_id, row.skill_id),
                "observed": row.observed,
                "target": row.target,
                "low": row.band[0],
                "high": row.band[1],
                "shown": row.shown,
                "n": row.n,
                "windows": WINDOWS,
            },
        )


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


def rises(before: tuple[int, int], after: tuple[int, int]) -> bool:
    """Whether the share k of n rose from ``before`` to ``after`` by more than chance.

    The pooled two-proportion z test, one-sided at 95 %.
    """
    (k0, n0), (k1, n1) = before, after
    if not n0 or not n1:
        return False
    pooled = (k0 + k1) / (n0 + n1)
    spread = math.sqrt(pooled * (1 - pooled) * (1 / n0 + 1 / n1))
    return spread > 0 and (k1 / n1 - k0 / n0) / spread > RISE_Z


def _windows(data: RoundData, rate: str, of: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """(k, n) of ``rate`` over the TREND steps before the last TREND steps, and over these."""
    rates, counts = data.series.get(rate), data.series.get(of)
    steps = sorted(step for step in rates if counts.get(step))

    def total(chosen: Sequence[int]) -> tuple[int, int]:
        return (
            round(sum(rates[s] * counts[s] for s in chosen)),
            round(sum(counts[s] for s in chosen)),
        )

    return total(steps[-2 * TREND : -TREND]), total(steps[-TREND:])


def _internalisation(data: RoundData) -> Iterator[Finding]:
    """More and more groups fail whole although the full skill would have saved most of them."""
    before, after = _windows(data, "all_wrong_group_rate", "scored_group_count")
    _earlier, retries = _windows(data, "full_skill_retry_success_rate", "full_skill_retry_count")
    saved, tried = retries
    if rises(before, after) and tried and saved * 2 >= tried:
        yield Finding(
            "internalisation",
            facts={"before": before[0] / before[1], "after": after[0] / after[1],
                   "saved": saved, "tried": tried, "steps": TREND},
        )  # fmt: skip


def _pending(facts: Facts) -> Iterator[Finding]:
    """Failures that the bank cannot help pile up, and no card made of them is fit for use."""
    if facts.eligible != 0:
        return
    before, after = _windows(facts.data, "pending_analysis_rate", "triaged_group_count")
    if rises(before, after):
        yield Finding(
            "pending",
            facts={"before": before[0] / before[1], "after": after[0] / after[1],
                   "groups": after[0], "steps": TREND},
        )  # fmt: skip


def _stalled(facts: Facts) -> Iterator[Finding]:
    """No step for three times the median step time, while training runs."""
    train = facts.stage("train")
    median = usual_step(facts.data)
    if train is None or train.state != State.RUNNING or median is None:
        return
    age = (timezone.now() - train.updated_at).total_seconds()
    if age > max(STALL * median, STALL_MIN_S):
        yield Finding("stalled", facts={"median": median}, moment=train.updated_at)


def usual_step(data: RoundData) -> float | None:
    """The median seconds of this round's steps, in its first ones of earlier rounds' too; None
    before RECENT steps of the experiment.
    """
    own = [*data.series.get("perf/step_time").values()]
    if len(own) < RECENT:  # later they count alone: the round may have other settings
        own += data.earlier.get("perf/step_time").values()
    return sorted(own)[len(own) // 2] if len(own) >= RECENT else None
