"""The analyst's desk: everything a round's analysis works with, opened from its configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainer.analyst.card_store import CardStore
from trainer.analyst.cards import CardContext
from trainer.analyst.compiler.compile import Compiler, NoCompiler
from trainer.analyst.compiler.history import History
from trainer.analyst.compiler.style import ProcedureStyle, SentenceStyle, Style
from trainer.analyst.firewall import Firewall
from trainer.analyst.maker import Analyst, CardMaker
from trainer.analyst.probe import Prober
from trainer.analyst.rules.analyst import RuleBasedAnalyst
from trainer.analyst.rules.compile import RuleBasedCompiler
from trainer.analyst.triage_queue import Case, waiting_cases
from trainer.config import AnalystConfig, PolicyConfig
from trainer.errors import InputError
from trainer.gate.ledger import Row, load_ledger
from trainer.rollout.policy import Policy
from trainer.shop.world import World, load_world
from trainer.skills.bank import SkillBank, load_bank

OpenPolicy = Callable[[PolicyConfig, World], Policy]

#: sessions that the rule-based analyst may open for one card
MOST_TRIALS = 24


@dataclass(frozen=True, slots=True)
class Desk:
    """``maker`` is None without an analyst; nothing is loaded then that is not needed."""

    config: AnalystConfig
    bank: SkillBank
    history: Sequence[Row]
    world: World | None
    firewall: Firewall
    style: Style
    maker: CardMaker | None
    compiler: Compiler
    prober: Prober | None = None

    @property
    def folder(self) -> Path:
        return self.config.output_dir

    @property
    def concurrency(self) -> int:
        """Cards in work at a time; rules gain nothing from threads."""
        settings = self.config.analyst
        return settings.limits.concurrency if settings.kind == "endpoint" else 1

    def cases(self, known: Sequence[int] = ()) -> list[Case]:
        """The groups that wait now, without those of ``known`` indices."""
        trigger = self.config.analyst.trigger
        return waiting_cases(self.config.training_dir, self.bank, trigger, known=frozenset(known))

    def past(self) -> History:
        """What must not be proposed again."""
        settings = self.config.analyst
        return History(
            self.history, self.bank.chunks, settings.near_duplicate, settings.retry_undecided
        )


def open_desk(config: AnalystConfig, open_policy: OpenPolicy | None = None) -> Desk:
    """Read bank and ledger and open the analyst; ``open_policy`` is asked when a probe is wanted.

    Raises InputError for whatever cannot be used.
    """
    bank = load_bank(config.skillbank)
    history = load_history(config.ledger_history)
    settings = config.analyst
    if settings.kind == "none":
        wall = Firewall("compat")
        return Desk(config, bank, history, None, wall, ProcedureStyle(), None, NoCompiler())
    world = load_world(
        config.world.profile, catalogue=config.world.catalogue, splits=config.world.splits
    )
    firewall = Firewall(settings.firewall, world.catalogue)
    style = style_of(world)
    store = CardStore(config.output_dir / "failure_cards.jsonl")
    prober = _prober(config, bank, world, open_policy)
    analyst, compiler = _people(config, bank, world, store, prober)
    maker = CardMaker(
        analyst=analyst,
        context=CardContext(
            stage="online",
            active_ids=[chunk.skill_id for chunk in bank.chunks],
            firewall=firewall,
            provenance=analyst.provenance,
        ),
        store=store,
        bank_sha256=bank.bank_sha256,
        turns=settings.limits.turns,
        catalogue=world.catalogue,
        resume=settings.resume,
    )
    return Desk(config, bank, history, world, firewall, style, maker, compiler, prober)


def _people(
    config: AnalystConfig,
    bank: SkillBank,
    world: World,
    store: CardStore,
    prober: Prober | None,
) -> tuple[Analyst, Compiler]:
    if config.analyst.kind == "endpoint":
        from trainer.analyst.endpoint.people import open_people

        return open_people(config, bank, world, store)
    analyst = RuleBasedAnalyst(world, bank.chunks, most_trials=MOST_TRIALS)
    return analyst, RuleBasedCompiler(analyst.mechanisms, prober)


def _prober(
    config: AnalystConfig, bank: SkillBank, world: World, open_policy: OpenPolicy | None
) -> Prober | None:
    settings = config.analyst.probe
    if not settings.enabled or config.policy is None:
        return None
    if open_policy is None:
        raise InputError(
            "the probe needs an engine, and this caller brings none",
            field="analyst.probe.enabled",
            value=True,
            remedy="Start it as python -m trainer analyst",
        )
    policy = open_policy(config.policy, world)
    return Prober(world, policy, bank.chunks, settings, config.seed)


def style_of(world: World) -> Style:
    """How candidates are written for a world's policy."""
    if world.language is None:
        return ProcedureStyle()
    return SentenceStyle(frozenset(world.language.vocabulary()))


def load_history(path: Path | None) -> list[Row]:
    """The ledger of earlier rounds. A ledger that is named must be there: losing it is an error."""
    if path is None:
        return []
    if not path.exists():
        raise InputError(
            "the proposal ledger of the earlier rounds is missing",
            file=path,
            remedy="Restore it, or leave ledger_history out in the first round",
        )
    return load_ledger(path)
