"""Opens analyst and compiler of an endpoint: one client, one budget, one folder of transcripts."""

from __future__ import annotations

from trainer.analyst.card_store import CardStore
from trainer.analyst.compiler.compile import Compiler
from trainer.analyst.endpoint.analyst import EndpointAnalyst
from trainer.analyst.endpoint.compiler import EndpointCompiler
from trainer.analyst.endpoint.line import open_line
from trainer.analyst.maker import Analyst
from trainer.config import AnalystConfig
from trainer.shop.world import World
from trainer.skills.bank import SkillBank


def open_people(
    config: AnalystConfig, bank: SkillBank, world: World, store: CardStore
) -> tuple[Analyst, Compiler]:
    """Analyst and compiler of a round."""
    line = open_line(config.analyst, config.output_dir / "transcripts")
    analyst = EndpointAnalyst(
        world,
        bank.chunks,
        line,
        limits=config.analyst.limits,
        store=store,
    )
    compiler = EndpointCompiler(
        world,
        bank.chunks,
        line,
        limits=config.analyst.limits,
        restructure=config.analyst.restructure,
    )
    return analyst, compiler
