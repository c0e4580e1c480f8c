"""What a compilation must satisfy, whoever made it: every broken rule is named (§12).

The published holes are closed: an id may not be repeated inside one candidate's evidence, an empty
target equals none, and near-duplicates are found here instead of being left to the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from trainer.analyst.compiler.history import History, similarity
from trainer.analyst.compiler.restructure import (
    PART_TEXTS,
    RESTRUCTURINGS,
    chunks_of,
    expand,
    shape_errors,
)
from trainer.analyst.compiler.style import Style
from trainer.analyst.firewall import Firewall, GoldFacts

Item = Mapping[str, Any]
TEXTS = ("title", "failure_mechanism", "applicable_when", "verification", "common_failure")


@dataclass(frozen=True, slots=True)
class Contract:
    """The rules of one compilation. ``facts`` are those behind each eligible card, by card id;
    ``restructure`` allows DELETE, MERGE and SPLIT."""

    max_candidates: int
    active_ids: Sequence[str]
    facts: Mapping[str, GoldFacts]
    firewall: Firewall
    history: History
    style: Style
    restructure: bool = False

    def errors(self, result: Mapping[str, Any]) -> list[str]:
        """Every rule that a compilation breaks; empty when it may be used."""
        items = result.get("candidates")
        rest = result.get("evidence_only_card_ids")
        if not _is_objects(items):
            return ["candidates must be a list of objects"]
        if not _is_texts(rest):
            return ["evidence_only_card_ids must be a list of card ids"]
        errors = []
        plain: list[tuple[int, Item]] = []
        sound: list[Item] = []
        for number, item in enumerate(items):
            problems = self._shape(item)
            errors += [f"candidates[{number}]: {problem}" for problem in problems]
            if not problems:
                sound.append(item)
                plain += [(number, each) for each in expand(item)]
        slots = len(plain) + len(items) - len(sound)
        if slots > self.max_candidates:
            errors.insert(0, f"{slots} candidates, at most {self.max_candidates} are allowed")
        for number, item in plain:
            errors += [f"candidates[{number}]: {problem}" for problem in self.objections(item)]
        for number, item in enumerate(items):
            if item in sound and not expand(item):
                texts = {"failure_mechanism": item["failure_mechanism"]}
                errors += [f"candidates[{number}]: {text}" for text in self._leaks(item, texts)]
        errors += self._repeated(plain) + self._contradictions(sound)
        return errors + self._accounting(items, rest)

    def _shape(self, item: Item) -> list[str]:
        problems = []
        operation, target = item.get("operation"), item.get("target_chunk_id")
        if self.restructure and operation in RESTRUCTURINGS:
            problems += shape_errors(item, self.active_ids)
        elif operation not in ("ADD", "REWRITE"):
            allowed = (
                "ADD, REWRITE, DELETE, MERGE or SPLIT" if self.restructure else "ADD or REWRITE"
            )
            problems.append(f"operation must be {allowed}, not {operation!r}")
        elif operation == "ADD" and target not in (None, ""):
            problems.append(f"an ADD has no target_chunk_id, not {target!r}")
        elif operation == "REWRITE" and target not in self.active_ids:
            problems.append(f"target_chunk_id {target!r} is not an active chunk")
        if operation == "SPLIT":
            parts = item.get("parts")
            for place, part in enumerate(parts if _is_objects(parts) else ()):
                problems += [f"parts[{place}]: {text}" for text in _missing(part, PART_TEXTS)]
            problems += _missing(item, ("failure_mechanism",), procedure=False)
        elif operation == "DELETE":
            problems += _missing(item, ("failure_mechanism",), procedure=False)
        else:
            problems += _missing(item, TEXTS)
        if not _is_texts(item.get("evidence_card_ids")) or not item["evidence_card_ids"]:
            problems.append("evidence_card_ids must be a non-empty list of card ids")
        return problems

    def objections(self, item: Item) -> list[str]:
        """What firewall, style and history have against an item that has the right shape."""
        problems = self._leaks(item, {name: item[name] for name in (*TEXTS, "procedure")})
        problems += self.style.errors(item)
        content = self.style.render(item)
        return problems + self.history.objections(
            item["operation"], item.get("target_chunk_id"), content
        )

    def _leaks(self, item: Item, texts: Mapping[str, Any]) -> list[str]:
        cited = [self.facts[card] for card in item["evidence_card_ids"] if card in self.facts]
        findings = self.firewall.candidate(texts, cited)
        return [f"firewall: {rule}" for rule in dict.fromkeys(f.rule for f in findings)]

    def _repeated(self, shaped: Sequence[tuple[int, Item]]) -> list[str]:
        """Candidates that say what an earlier one of the same compilation says: each slot costs the
        gate power, wherever its text would stand."""
        errors = []
        for place, (number, item) in enumerate(shaped):
            content = self.style.render(item)
            for earlier, other in shaped[:place]:
                share = similarity(self.style.render(other), content)
                if share > self.history.threshold:
                    errors.append(
                        f"candidates[{number}] repeats candidates[{earlier}] (overlap {share:.2f})"
                    )
                    break
        return errors

    def _contradictions(self, sound: Sequence[Item]) -> list[str]:
        """A chunk that is deleted, merged or split is the subject of nothing else."""
        uses = Counter(
            chunk
            for item in sound
            if item["operation"] != "ADD"
            for chunk in dict.fromkeys(chunks_of(item))
        )
        restructured = {
            chunk
            for item in sound
            if item["operation"] in RESTRUCTURINGS
            for chunk in chunks_of(item)
        }
        return [
            f"chunk {chunk!r} is the subject of {count} proposals, of which one restructures it"
            for chunk, count in uses.items()
            if count > 1 and chunk in restructured
        ]

    def _accounting(self, items: Sequence[Item], rest: Sequence[str]) -> list[str]:
        """Every card is used exactly once, or listed as evidence only."""
        lists = [item.get("evidence_card_ids") for item in items]
        cited = [card for cards in lists if _is_texts(cards) for card in cards]
        uses = Counter([*cited, *rest])
        errors = [f"unknown card id {card!r}" for card in uses if card not in self.facts]
        errors += [
            f"card {card!r} is used {count} times"
            for card, count in uses.items()
            if count > 1 and card in self.facts
        ]
        return errors + [
            f"card {card!r} is neither cited nor listed as evidence only"
            for card in self.facts
            if card not in uses
        ]


def _missing(item: Item, texts: Sequence[str], *, procedure: bool = True) -> list[str]:
    """Which of the named texts, and of the procedure's steps, are not there."""
    problems = [
        f"{name} must be a non-empty text"
        for name in texts
        if not isinstance(item.get(name), str) or not item[name].strip()
    ]
    steps = item.get("procedure")
    sound = _is_texts(steps) and bool(steps) and all(step.strip() for step in steps)
    if procedure and not sound:
        problems.append("procedure must be a non-empty list of non-empty texts")
    return problems


def _is_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_objects(value: object) -> TypeGuard[list[Item]]:
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)
