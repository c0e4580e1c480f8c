"""Makes cards: from a waiting case to a line in the card store, once for every input.

An analyst that fails on one trace leaves an error row there and nowhere else; what would fail on
every trace (a refused key, a spent budget, a stop) ends the whole analysis instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from trainer.analyst.card_store import CardStore
from trainer.analyst.cards import (
    CardContext,
    Investigation,
    Submission,
    card_row,
    error_row,
    input_fingerprint,
)
from trainer.analyst.firewall import gold_facts
from trainer.analyst.triage_queue import Case
from trainer.shop.catalogue import Catalogue


class AnalystFailed(Exception):
    """One trace could not be analysed; the others may be."""


class AnalysisEnded(Exception):
    """Nothing more can be analysed now: the server refuses us, or the budget is spent."""


class Analyst(Protocol):
    """Reads one failed trace."""

    provenance: str

    def identity(self) -> Mapping[str, Any]:
        """What decides the outcome besides trace and bank: model, sampling, prompts, tools."""
        ...

    def analyse(self, trace: Mapping[str, Any]) -> tuple[Submission, Investigation]:
        """What is wrong, and how it was found out. Raises AnalystFailed and AnalysisEnded."""
        ...


@dataclass(frozen=True, slots=True)
class CardMaker:
    """Everything that the cards of one round share."""

    analyst: Analyst
    context: CardContext
    store: CardStore
    bank_sha256: str
    turns: int
    catalogue: Catalogue | None
    resume: bool = True

    def fingerprint(self, case: Case) -> str:
        """What the card of a case is made from."""
        return input_fingerprint(
            case.trace,
            bank_sha256=self.bank_sha256,
            analyst=self.analyst.identity(),
            turns=self.turns,
            wall=self.context.firewall.identity(),
        )

    def is_done(self, case: Case, *, retry_errors: bool) -> bool:
        """Whether the store has a card of this very input."""
        return self.resume and self.store.usable(
            case.source, self.fingerprint(case), retry_errors=retry_errors
        )

    def make(self, case: Case) -> None:
        """Analyse a case and file its card. Raises AnalysisEnded and StopRequested."""
        mark = self.fingerprint(case)
        try:
            submission, work = self.analyst.analyse(case.trace)
        except AnalystFailed as error:
            row = error_row(
                case.trace, error, input_fingerprint=mark, provenance=self.analyst.provenance
            )
        else:
            row = card_row(
                case.trace,
                submission,
                work,
                self.context,
                facts=gold_facts(case.trace, self.catalogue),
                input_fingerprint=mark,
                trigger=case.trigger,
            )
        self.store.add(row)
