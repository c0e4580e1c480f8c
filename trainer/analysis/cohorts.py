"""What many episodes did: distributions by outcome, and differences on common tasks.

``describe`` summarises one population; ``pair`` averages a task's episodes within each side first,
so a task counts once. The paired interval is the published one of behaviour reports: 5,000
resamples of ``numpy.default_rng``, seeded by the metric's name (gate-analysis.md §14.1).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from trainer.analysis.behaviour import METRICS, PHASES, SHARES, Behaviour
from trainer.analysis.schema_outcomes import BehaviourPair, Cohort
from trainer.analysis.schema_values import Described, Difference
from trainer.compare.bootstrap import Array
from trainer.means import mean

OUTCOMES = ("all", "success", "failure", "technical")
RESAMPLES = 5_000
SEED = 20260909


@dataclass(frozen=True, slots=True)
class Population:
    """Episodes that belong together; ``token_basis`` says what a token count is."""

    name: str
    split: str
    round: int | None
    episodes: Sequence[Behaviour]
    token_basis: str
    source: str


def describe(population: Population) -> list[Cohort]:
    """A cohort for each outcome that occurs; ``all`` holds the scored episodes."""
    chosen = {
        "all": [e for e in population.episodes if e.outcome != "technical"],
        **{o: [e for e in population.episodes if e.outcome == o] for o in OUTCOMES[1:]},
    }
    return [_cohort(population, name, rows) for name, rows in chosen.items() if rows]


def _cohort(population: Population, outcome: str, rows: Sequence[Behaviour]) -> Cohort:
    rewards = [row.reward for row in rows if row.reward is not None]
    whole = [row for row in rows if row.values["tokens_per_turn"] is not None]
    turns = sum(int(row.values["model_steps"] or 0) for row in whole)
    tokens = sum(int(row.values["generated_tokens"] or 0) for row in whole)
    return Cohort(
        name=population.name,
        split=population.split,
        round=population.round,
        outcome=outcome,
        n=len(rows),
        tasks=len({row.task_id for row in rows}),
        success_rate=_share(row.outcome == "success" for row in rows) if rewards else None,
        reward_mean=mean(np.array(rewards)) if rewards else None,
        metrics={m: found for m in METRICS if (found := described(_values(rows, m))) is not None},
        pooled_tokens_per_turn=tokens / turns if turns else None,
        token_complete=len(whole),
        token_basis=population.token_basis,
        shares={f"any_{name}": _share((row.values[name] or 0) > 0 for row in rows)
                for name in SHARES},
        terminations=dict(sorted(Counter(row.termination for row in rows).items())),
        phases=_phases(rows),
        source=population.source,
    )  # fmt: skip


def described(values: Sequence[float]) -> Described | None:
    """n, mean, median and 90th percentile; None of nothing."""
    if not values:
        return None
    array = np.array(values, dtype=np.float64)
    return Described(
        n=len(values),
        mean=mean(array),
        median=float(np.median(array)),
        p90=float(np.percentile(array, 90)),
        least=float(array.min()),
        most=float(array.max()),
    )


def _values(rows: Iterable[Behaviour], metric: str) -> list[float]:
    return [float(value) for row in rows if (value := row.values[metric]) is not None]


def _share(flags: Iterable[bool]) -> float:
    listed = list(flags)
    return sum(listed) / len(listed)


def _phases(rows: Sequence[Behaviour]) -> dict[str, dict[str, float]]:
    found = {}
    for phase in PHASES:
        turns = sum(row.phases[phase][0] for row in rows)
        tokens = sum(row.phases[phase][1] for row in rows)
        found[phase] = {
            "turns": turns,
            "turns_per_episode": turns / len(rows),
            "tokens": tokens,
            "tokens_per_turn": tokens / turns if turns else 0.0,
        }
    return found


def pair(a: Population, b: Population, *, both_successful: bool = False) -> BehaviourPair | None:
    """Every metric's difference b - a on the tasks that both scored; None without two of them."""
    sides = [_by_task(side, both_successful) for side in (a, b)]
    tasks = sorted(sides[0].keys() & sides[1].keys())
    if len(tasks) < 2:
        return None
    found = []
    for metric in METRICS:
        values = [
            (x, y)
            for task in tasks
            if (x := _task_mean(sides[0][task], metric)) is not None
            and (y := _task_mean(sides[1][task], metric)) is not None
        ]
        if len(values) > 1:
            found.append(_difference(metric, values, f"{a.source}; {b.source}"))
    return BehaviourPair(
        name=f"{b.name} − {a.name}",
        a=a.name,
        b=b.name,
        subset="both_success" if both_successful else "all",
        n=len(tasks),
        metrics=found,
    )


def _by_task(side: Population, both_successful: bool) -> dict[int, list[Behaviour]]:
    tasks: dict[int, list[Behaviour]] = {}
    for row in side.episodes:
        if row.outcome != "technical":
            tasks.setdefault(row.task_id, []).append(row)
    if both_successful:
        return {t: rows for t, rows in tasks.items() if all(r.outcome == "success" for r in rows)}
    return tasks


def _task_mean(rows: Sequence[Behaviour], metric: str) -> float | None:
    values = _values(rows, metric)
    return mean(np.array(values)) if values else None


def _difference(metric: str, values: Sequence[tuple[float, float]], source: str) -> Difference:
    table = np.array(values)
    gaps = table[:, 1] - table[:, 0]
    return Difference(
        metric=metric,
        n=len(values),
        of="tasks",
        a=mean(table[:, 0]),
        b=mean(table[:, 1]),
        difference=mean(gaps),
        interval=interval(gaps, metric),
        sd=float(gaps.std(ddof=1)),
        source=source,
    )


def interval(gaps: Array, metric: str) -> tuple[float, float]:
    """The percentile interval of the mean of ``gaps``; ``metric`` names the random stream."""
    digest = hashlib.sha256(f"{SEED}:{metric}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:4], "big"))
    n = len(gaps)
    means = gaps[rng.integers(0, n, (RESAMPLES, n))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)
