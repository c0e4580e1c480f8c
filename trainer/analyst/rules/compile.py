"""The rule-based compiler: cards of one mechanism and one target become one candidate.

The mechanisms with the most different tasks come first. Of a mechanism's sentences the first is
taken to which the contract has no objection, or with a probe the one that helps the policy most;
when all were tried before, the cards are evidence only, and the notes say what happened to each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.analyst.compiler.compile import Compiled
from trainer.analyst.compiler.contract import Contract
from trainer.analyst.probe import Effect, Prober
from trainer.analyst.rules.analyst import VERSION
from trainer.analyst.rules.mechanisms import Mechanism, wording_sha256
from trainer.analyst.rules.reading import HIDDEN_LABEL

Card = Mapping[str, Any]
Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RuleBasedCompiler:
    """Compiles the eligible cards of one round; its notes say what was not proposed, and why."""

    mechanisms: Mapping[str, Mechanism]
    prober: Prober | None = None

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
            item = None
            if len(items) < contract.max_candidates:
                item = self._item(group, contract, notes)
            else:
                notes.append(f"{_failure(group[0])}: no place left")
            if item is None:
                rest += [card["card_id"] for card in group]
            else:
                items.append(item)
        return Compiled(items, sorted(rest), notes, attempts=1)

    def _item(self, group: Sequence[Card], contract: Contract, notes: list[str]) -> Item | None:
        """The wording that the contract has nothing against and that helps the policy most."""
        written = group[0]["deployable_abstraction"]
        mechanism = self._mechanism(_failure(group[0]))
        allowed: list[Item] = []
        for number, sentence in enumerate(mechanism.sentences(HIDDEN_LABEL), 1):
            item = {
                "operation": "REWRITE" if written["target_chunk_id"] else "ADD",
                "target_chunk_id": written["target_chunk_id"],
                "title": mechanism.name.replace("_", " ").replace(":", " ").capitalize(),
                "failure_mechanism": mechanism.failure,
                "applicable_when": mechanism.applies,
                "procedure": [sentence],
                "verification": mechanism.verify,
                "common_failure": mechanism.failure,
                "evidence_card_ids": sorted(card["card_id"] for card in group),
            }
            objections = contract.objections(item)
            if objections:
                notes.append(f"{mechanism.name}, wording {number}: {'; '.join(objections)}")
            else:
                allowed.append(item)
        return self._best(allowed, {card["task_id"] for card in group}) if allowed else None

    def _best(self, items: Sequence[Item], tasks: Collection[int]) -> Item:
        """The first wording, or with a probe the one that helps most: the best on their own tasks
        are compared on others too, and all that was measured counts."""
        if self.prober is None or len(items) == 1:
            return items[0]
        prober = self.prober

        def on_sources(item: Item) -> Effect:
            return prober.on_sources(item, item["procedure"][0], tasks)

        def overall(item: Item) -> float:
            here, there = on_sources(item), prober.on_others(item, item["procedure"][0], tasks)
            total = here.change * here.episodes + there.change * there.episodes
            return total / (here.episodes + there.episodes)

        ranked = sorted(items, key=lambda item: -on_sources(item).change)
        return max(ranked[: prober.settings.finalists], key=overall)

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
