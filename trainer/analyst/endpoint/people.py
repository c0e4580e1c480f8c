"""Opens analyst and compiler of an endpoint: one client, one budget, one folder of transcripts."""

from __future__ import annotations

from trainer.analyst.card_store import CardStore
from trainer.analyst.compiler.compile import Compiler
from trainer.analyst.endpoint.analyst import EndpointAnalyst
from trainer.analyst.endpoint.budget import Budget
from trainer.analyst.endpoint.client import OpenAIClient
from trainer.analyst.endpoint.compiler import EndpointCompiler
from trainer.analyst.endpoint.journal import spent_in
from trainer.analyst.maker import Analyst
from trainer.config import AnalystConfig
from trainer.shop.world import World
from trainer.skills.bank import SkillBank


def open_people(
    config: AnalystConfig, bank: SkillBank, world: World, store: CardStore
) -> tuple[Analyst, Compiler]:
    """Raises InputError when the environment holds no key. What earlier runs of this round spent
    counts against the budget."""
    settings = config.analyst.endpoint
    if settings is None:
        raise ValueError("an endpoint analyst needs analyst.endpoint")
    transcripts = config.output_dir / "transcripts"
    budget = Budget(settings)
    for usage in spent_in(transcripts):
        budget.add(usage)
    client = OpenAIClient(settings)
    analyst = EndpointAnalyst(
        world,
        bank.chunks,
        settings=settings,
        limits=config.analyst.limits,
        client=client,
        budget=budget,
        transcripts=transcripts,
        store=store,
    )
    compiler = EndpointCompiler(
        world,
        bank.chunks,
        settings=settings,
        limits=config.analyst.limits,
        client=client,
        budget=budget,
        transcripts=transcripts,
    )
    return analyst, compiler
