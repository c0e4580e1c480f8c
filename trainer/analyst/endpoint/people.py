"""Opens analyst and compiler of an endpoint: one client, one budget, one folder of transcripts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trainer.analyst.card_store import CardStore
from trainer.analyst.compiler.compile import Compiler
from trainer.analyst.endpoint.analyst import EndpointAnalyst
from trainer.analyst.endpoint.budget import Budget
from trainer.analyst.endpoint.client import ChatClient, OpenAIClient
from trainer.analyst.endpoint.compiler import EndpointCompiler
from trainer.analyst.endpoint.journal import spent_in
from trainer.analyst.maker import Analyst
from trainer.analyst.settings import AnalystSettings, ChatSettings
from trainer.config import AnalystConfig
from trainer.shop.world import World
from trainer.skills.bank import SkillBank


@dataclass(frozen=True, slots=True)
class Line:
    """The way to a server, and what may be spent on it."""

    settings: ChatSettings
    client: ChatClient
    budget: Budget
    transcripts: Path


def open_line(settings: AnalystSettings, transcripts: Path) -> Line:
    """Raises InputError when the environment holds no key. What earlier runs over the same
    transcripts spent counts against the budget."""
    if settings.endpoint is None:
        raise ValueError("an endpoint analyst needs analyst.endpoint")
    budget = Budget(settings.endpoint)
    for usage in spent_in(transcripts):
        budget.add(usage)
    return Line(settings.endpoint, OpenAIClient(settings.endpoint), budget, transcripts)


def open_people(
    config: AnalystConfig, bank: SkillBank, world: World, store: CardStore
) -> tuple[Analyst, Compiler]:
    """Analyst and compiler of a round."""
    line = open_line(config.analyst, config.output_dir / "transcripts")
    analyst = EndpointAnalyst(
        world,
        bank.chunks,
        settings=line.settings,
        limits=config.analyst.limits,
        client=line.client,
        budget=line.budget,
        transcripts=line.transcripts,
        store=store,
    )
    compiler = EndpointCompiler(
        world,
        bank.chunks,
        settings=line.settings,
        limits=config.analyst.limits,
        client=line.client,
        budget=line.budget,
        transcripts=line.transcripts,
        restructure=config.analyst.restructure,
    )
    return analyst, compiler
