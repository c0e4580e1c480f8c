"""What rounds that have not begun will take and cost, from what finished stages took and cost.

A stage that plays episodes takes their planned number times the pace of such stages; another takes
the median of its kind. Only newest stages of the same engine and world count. What nothing is known
of is left out, and the sum is then a lower bound and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

from django.db.models import Prefetch

from intraskill_web.experiments.models import Attempt, Stage
from intraskill_web.experiments.planned import planned_episodes
from intraskill_web.experiments.states import STAGE_ORDER
from jobs import placement
from jobs.transitions import State
from trainer.experiment_config import ExperimentConfig

NEWEST = 120  # stages: about twenty rounds
PLAYS = ("freeze", "validate", "gate", "select")  # whose episodes are alike: no update follows


@dataclass(frozen=True, slots=True)
class Money:
    """An amount in a currency; ``at_most`` where only the budget bounds it."""

    amount: float
    currency: str
    at_most: bool = False


@dataclass(frozen=True, slots=True)
class Estimate:
    """Of several experiments. ``seconds`` is None where no finished stage tells anything."""

    experiments: int
    rounds: int
    seconds: float | None = None
    at_least: bool = False
    hosts: int = 1
    money: tuple[Money, ...] = ()
    unknown_price: bool = False  # a price is set, and neither a bill nor a budget says how much

    @property
    def wall_seconds(self) -> float | None:
        """With every host at work all the time."""
        share = min(self.hosts, self.experiments) or 1
        return None if self.seconds is None else self.seconds / share

    @property
    def round_seconds(self) -> float | None:
        """Of one round, on average."""
        return None if self.seconds is None else self.seconds / self.rounds

    def data(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "experiments": self.experiments,
            "rounds": self.rounds,
            "seconds": self.seconds,
            "at_least": self.at_least,
            "hosts": self.hosts,
            "wall_seconds": self.wall_seconds,
            "money": [
                {"amount": m.amount, "currency": m.currency, "at_most": m.at_most}
                for m in self.money
            ],
            "unknown_price": self.unknown_price,
        }


@dataclass(slots=True)
class Experience:
    """What finished stages took by kind, and what a round's analysis cost by model."""

    per_episode: dict[str, list[float]] = field(default_factory=dict)
    whole: dict[str, list[float]] = field(default_factory=dict)
    bills: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    def add(self, stage: Stage, seconds: float) -> None:
        """Learn from a stage that succeeded after so much work."""
        round_ = stage.round
        last = round_.number + 1 == round_.experiment.rounds_planned
        episodes = episodes_of(stage.kind, round_.settings, first=round_.number == 0, last=last)
        if episodes:
            self.per_episode.setdefault(stage.kind, []).append(seconds / episodes)
        else:
            self.whole.setdefault(stage.kind, []).append(seconds)
        priced = price_of(round_.settings)
        if stage.kind == "analyse" and priced and "cost" in stage.outcome:
            self.bills.setdefault(priced, []).append(float(stage.outcome["cost"]))

    def seconds(
        self, kind: str, config: Mapping[str, Any], *, first: bool, last: bool
    ) -> float | None:
        """Of a stage that has not begun; None where nothing is known."""
        episodes = episodes_of(kind, config, first=first, last=last)
        if not episodes:
            known = self.whole.get(kind)
            return median(known) if known else None
        paces = self.per_episode.get(kind) or [
            pace for other in PLAYS if kind in PLAYS for pace in self.per_episode.get(other, [])
        ]
        return episodes * median(paces) if paces else None


def episodes_of(kind: str, config: Mapping[str, Any], *, first: bool, last: bool) -> int:
    """Episodes that a stage plays, those of the first and of the last round included; 0 where it
    plays none or the settings do not say.
    """
    if kind == "freeze":
        return (planned_episodes("validate", config) or 0) if first else 0
    if kind == "select":
        return 2 * (config.get("evaluation", {}).get("test_tasks") or 0) if last else 0
    return planned_episodes(kind, config) or 0


def price_of(config: Mapping[str, Any]) -> tuple[str, str] | None:
    """(model, currency) of an analyst whose calls have a price."""
    endpoint = config.get("analyst", {}).get("endpoint") or {}
    prices = endpoint.get("prices") or {}
    if not any(prices.get(name) for name in ("input", "cached_input", "output")):
        return None
    return str(endpoint.get("model", "")), str(prices.get("currency", ""))


def experience(config: Mapping[str, Any]) -> Experience:
    """Of the newest finished stages of this engine and world (two queries)."""
    done = Stage.objects.filter(
        state=State.SUCCEEDED, round__experiment__engine=config.get("engine", "local")
    ).filter(attempts__isnull=False)
    attempts = Prefetch("attempts", Attempt.objects.only("stage", "started_at", "ended_at"))
    newest = done.distinct().order_by("-pk").select_related("round__experiment")[:NEWEST]
    made = Experience()
    world = config.get("world", {}).get("profile")
    for stage in newest.prefetch_related(attempts):
        if stage.round.settings.get("world", {}).get("profile") == world:
            made.add(stage, sum(attempt.seconds or 0.0 for attempt in stage.attempts.all()))
    return made


def estimate(configs: Sequence[ExperimentConfig]) -> Estimate:
    """Of experiments that begin at their first round. Reads rows only."""
    plans = [config.model_dump(mode="json") for config in configs]
    known = experience(plans[0])
    parts = [part for plan in plans for part in _parts(known, plan)]
    told = [seconds for seconds in parts if seconds is not None]
    money = [_money(known, plan) for plan in plans if price_of(plan)]
    return Estimate(
        experiments=len(plans),
        rounds=sum(plan["rounds"] for plan in plans),
        seconds=sum(told) if told else None,
        at_least=len(told) < len(parts),
        hosts=len(placement.hosts_in_reach()),
        money=_sums(part for part in money if part is not None),
        unknown_price=any(part is None for part in money),
    )


def _parts(known: Experience, plan: Mapping[str, Any]) -> list[float | None]:
    """The seconds of all stages of a kind: of the first round, of the last, of those between."""
    rounds = int(plan["rounds"])
    ends = {number: (number == 0, number == rounds - 1, 1) for number in (0, rounds - 1)}
    parts = [*ends.values(), (False, False, rounds - len(ends))]
    return [
        seconds and seconds * times
        for first, last, times in parts
        if times
        for seconds in (known.seconds(kind, plan, first=first, last=last) for kind in STAGE_ORDER)
    ]


def _money(known: Experience, plan: Mapping[str, Any]) -> Money | None:
    """What the analyses of one experiment cost: as former ones did, else at most the budget."""
    priced, rounds = price_of(plan), int(plan["rounds"])
    assert priced is not None
    if bills := known.bills.get(priced):
        return Money(rounds * fmean(bills), priced[1])
    budget = plan["analyst"]["endpoint"].get("cost_budget")
    return None if budget is None else Money(rounds * budget, priced[1], at_most=True)


def _sums(parts: Iterable[Money]) -> tuple[Money, ...]:
    sums: dict[tuple[str, bool], float] = {}
    for part in parts:
        place = part.currency, part.at_most
        sums[place] = sums.get(place, 0.0) + part.amount
    return tuple(Money(sums[place], *place) for place in sorted(sums))
