"""The rule-based compiler: cards of one mechanism and one target become one candidate.

The mechanisms with the most different tasks come first. Of a mechanism's sentences the first is
taken to which the contract has no objection; when all were tried before, the cards are evidence
only, and the notes say what happened to each sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.analyst.compiler.compile import Compiled
from trainer.analyst.compiler.contract import Contract
from trainer.analyst.rules.analyst import VERSION, sentence_of
from trainer.analyst.rules.mechanisms import Mechanism, wording_sha256

Card = Mapping[str, Any]
Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RuleBasedCompiler:
    """Compiles the eligible cards of one round; its notes say what was not proposed, and why."""

    mechanisms: Mapping[str, Mechanism]

    def identity(self) -> Mapping[str, Any]:
        return {
            "provider": VERSION,
            "wording_sha256": wording_sha256(self.mechanisms.values()),
        }

    def compile(self, cards: Sequence[Card], contract: Contract) -> Compiled:
        """Candidates that the contract has nothing against, as many as it allows."""
        items: list[Item] = []
        rest: list[str] = []
        notes: list[str] = []
        for group in _clusters(cards):
            ids = sorted(card["card_id"] for card in group)
            item = None
            if len(items) < contract.max_candidates:
                item = self._item(group[0], ids, contract, notes)
            else:
                notes.append(f"{_failure(group[0])}: no place left")
            if item is None:
                rest += ids
            else:
                items.append(item)
        return Compiled(items, sorted(rest), notes, attempts=1)

    def _item(
        self, card: Card, ids: Sequence[str], contract: Contract, notes: list[str]
    ) -> Item | None:
        """The first wording that the contract has nothing against."""
        written = card["deployable_abstraction"]
        mechanism = self._mechanism(_failure(card))
        for wording in range(len(mechanism.advice)):
            item = {
                "operation": "REWRITE" if written["target_chunk_id"] else "ADD",
                "target_chunk_id": written["target_chunk_id"],
                "title": mechanism.name.replace("_", " ").replace(":", " ").capitalize(),
                "failure_mechanism": mechanism.failure,
                "applicable_when": mechanism.applies,
                "procedure": [sentence_of(mechanism, wording)],
                "verification": mechanism.verify,
                "common_failure": mechanism.failure,
                "evidence_card_ids": list(ids),
            }
            objections = contract.objections(item)
            if not objections:
                return item
            notes.append(f"{mechanism.name}, wording {wording + 1}: {'; '.join(objections)}")
        return None

    def _mechanism(self, failure: str) -> Mechanism:
        return next(each for each in self.mechanisms.values() if each.failure == failure)


def _failure(card: Card) -> str:
    return str(card["deployable_abstraction"]["failure_mechanism"])


def _clusters(cards: Sequence[Card]) -> list[list[Card]]:
    """Cards by operation, target and mechanism; most different tasks first."""
    clusters: dict[tuple[str, str, str], list[Card]] = {}
    for card in cards:
        written = card["deployable_abstraction"]
        key = card["status"], written["target_chunk_id"] or "", written["failure_mechanism"]
        clusters.setdefault(key, []).append(card)

    def rank(key: tuple[str, str, str]) -> tuple[int, tuple[str, str, str]]:
        return -len({card["task_id"] for card in clusters[key]}), key

    return [clusters[key] for key in sorted(clusters, key=rank)]
