"""Who does what in a cold start: rules for all roles, or a language model for all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.analyst.card_store import CardStore
from trainer.analyst.cold_start.clusters import Clusterer
from trainer.analyst.cold_start.endpoint import EndpointColdStart
from trainer.analyst.cold_start.rules import RuleBasedClusterer, RuleBasedSuccessAnalyst
from trainer.analyst.cold_start.settings import ColdStartConfig
from trainer.analyst.cold_start.success import SuccessAnalyst
from trainer.analyst.desk import MOST_TRIALS
from trainer.analyst.endpoint.analyst import EndpointAnalyst
from trainer.analyst.maker import Analyst
from trainer.analyst.rules.analyst import RuleBasedAnalyst
from trainer.shop.world import World

Row = dict[str, Any]
Check = Callable[[Mapping[str, Any]], list[str]]


@dataclass(frozen=True, slots=True)
class Team:
    """``draft`` compiles clusters into at most so many chunks that pass a check."""

    failures: Analyst
    successes: SuccessAnalyst
    clusterer: Clusterer
    draft: Callable[[Sequence[Row], int, Check], Row]


def open_team(config: ColdStartConfig, world: World, store: CardStore) -> Team:
    """Raises InputError for a world or an environment that the analyst cannot work in."""
    if config.analyst.kind == "endpoint":
        return _endpoint_team(config, world, store)
    failures = RuleBasedAnalyst(world, (), most_trials=MOST_TRIALS)
    rules = RuleBasedClusterer(failures.mechanisms)
    return Team(
        failures=failures,
        successes=RuleBasedSuccessAnalyst(world.catalogue, failures.mechanisms),
        clusterer=rules,
        draft=lambda clusters, most, _check: rules.compile(clusters, most),
    )


def _endpoint_team(config: ColdStartConfig, world: World, store: CardStore) -> Team:
    from trainer.analyst.endpoint.line import open_line

    line = open_line(config.analyst, config.output_dir / "transcripts")
    roles = EndpointColdStart(
        world,
        line,
        limits=config.analyst.limits,
    )
    failures = EndpointAnalyst(
        world,
        (),
        line,
        limits=config.analyst.limits,
        store=store,
        stage="cold_start",
    )
    return Team(failures=failures, successes=roles, clusterer=roles, draft=roles.draft)
