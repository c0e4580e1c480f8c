"""What a compiler is, and the compilation of a round: one that satisfies the contract, or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from trainer.analyst.compiler.contract import Contract
from trainer.analyst.compiler.restructure import RESTRUCTURINGS, expand
from trainer.analyst.maker import AnalysisEnded

Card = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiler's valid result, and how it came about. ``restructured`` are the items that delete,
    merge or split chunks as they were proposed; ``items`` hold what they ask the gate to judge."""

    items: Sequence[Mapping[str, Any]] = ()
    evidence_only: Sequence[str] = ()
    notes: Sequence[str] = ()
    attempts: int = 0
    accounting: Mapping[str, Any] = field(default_factory=dict)
    restructured: Sequence[Mapping[str, Any]] = ()


class Compiler(Protocol):
    """Merges the eligible cards of a round into candidates."""

    def identity(self) -> Mapping[str, Any]:
        """What decides the outcome besides cards, bank and history."""
        ...

    def compile(self, cards: Sequence[Card], contract: Contract) -> Compiled:
        """Raises CompilationFailed when no attempt satisfied the contract."""
        ...


class CompilationFailed(AnalysisEnded):
    """No attempt satisfied the contract; the message holds the last errors."""


class NoCompiler:
    """For rounds without an analyst: there is nothing to compile."""

    def identity(self) -> Mapping[str, Any]:
        return {"provider": "none"}

    def compile(self, cards: Sequence[Card], contract: Contract) -> Compiled:
        return Compiled()


def compile_cards(compiler: Compiler, cards: Sequence[Card], contract: Contract) -> Compiled:
    """The compilation of the eligible cards; without any the compiler is not even asked."""
    if not cards:
        return Compiled()
    compiled = compiler.compile(cards, contract)
    errors = contract.errors(
        {
            "candidates": list(compiled.items),
            "evidence_only_card_ids": list(compiled.evidence_only),
        }
    )
    if errors:
        raise CompilationFailed(f"the compilation breaks the contract: {'; '.join(errors)}")
    return replace(
        compiled,
        items=[plain for item in compiled.items for plain in expand(item)],
        restructured=[item for item in compiled.items if item["operation"] in RESTRUCTURINGS],
    )
