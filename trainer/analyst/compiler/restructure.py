"""DELETE, MERGE and SPLIT proposals as factors of a gate, which knows additions and rewrites only.

| proposal | candidates | the gate's factors | carried out when |
|---|---|---|---|
| DELETE a | none | a | a is not selected |
| MERGE a, b → c | c as a rewrite of a | c, b | c is selected and b is not |
| SPLIT a → c, d | c as a rewrite of a, d as an addition | c, d | both are selected |

So each is judged by the coefficients of its parts, nothing is deleted on a model's word, and a part
that the gate likes alone is kept alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.gate.pool import Candidate

Item = Mapping[str, Any]
RESTRUCTURINGS = ("DELETE", "MERGE", "SPLIT")
#: texts of an item that a part of a SPLIT has of its own
PART_TEXTS = ("title", "applicable_when", "verification", "common_failure")


def shape_errors(item: Item, active: Collection[str]) -> list[str]:
    """What is wrong with the fields that only a restructuring has."""
    operation, target = item["operation"], item.get("target_chunk_id")
    problems = []
    if target not in active:
        problems.append(f"target_chunk_id {target!r} is not an active chunk")
    if operation == "MERGE":
        others = item.get("other_chunk_ids")
        if not isinstance(others, list) or not others:
            problems.append("a MERGE needs other_chunk_ids, the chunks that go into the target")
        else:
            wrong = [each for each in others if each not in active or each == target]
            problems += [f"other_chunk_ids: {each!r} is not another active chunk" for each in wrong]
            if len({str(each) for each in others}) != len(others):
                problems.append("other_chunk_ids repeats a chunk")
    if operation == "SPLIT":
        parts = item.get("parts")
        if not isinstance(parts, list) or len(parts) < 2:
            problems.append("a SPLIT needs at least two parts")
        elif not all(isinstance(part, Mapping) for part in parts):
            problems.append("parts must be objects")
    return problems


def expand(item: Item) -> list[Item]:
    """The additions and rewrites by which a gate judges an item; a plain item is its own."""
    operation = item.get("operation")
    if operation == "DELETE":
        return []
    if operation == "MERGE":
        return [{**item, "operation": "REWRITE", "restructure": _mark(item)}]
    if operation != "SPLIT":
        return [item]
    first, *rest = item["parts"]
    shared = {key: value for key, value in item.items() if key != "parts"}
    shared["restructure"] = _mark(item)
    return [
        {**shared, **first, "operation": "REWRITE"},
        *({**shared, **part, "operation": "ADD", "target_chunk_id": None} for part in rest),
    ]


def chunks_of(item: Item) -> list[str]:
    """The active chunks that a restructuring is about, its target first."""
    return [item["target_chunk_id"], *(item.get("other_chunk_ids") or [])]


def _mark(item: Item) -> dict[str, Any]:
    return {"operation": item["operation"], "chunk_ids": chunks_of(item)}


@dataclass(frozen=True, slots=True)
class Restructuring:
    """One proposal; ``candidate_ids`` are its texts, ``retired`` the chunks that it ends."""

    operation: str
    chunk_ids: tuple[str, ...]
    candidate_ids: tuple[str, ...]
    failure_mechanism: str
    evidence_card_ids: tuple[str, ...]

    @property
    def retired(self) -> tuple[str, ...]:
        """Chunks that must lose their place for the proposal to be carried out."""
        if self.operation == "DELETE":
            return self.chunk_ids
        return self.chunk_ids[1:]

    @property
    def factors(self) -> tuple[str, ...]:
        """The gate's columns that decide it."""
        return (*self.candidate_ids, *self.retired)

    def to_record(self) -> dict[str, Any]:
        return {
            "operation": self.operation,
            "chunk_ids": list(self.chunk_ids),
            "candidate_ids": list(self.candidate_ids),
            "factors": list(self.factors),
            "failure_mechanism": self.failure_mechanism,
            "evidence_card_ids": list(self.evidence_card_ids),
        }


def restructurings(
    items: Sequence[Item], candidates: Sequence[Candidate]
) -> tuple[Restructuring, ...]:
    """The restructurings among valid items, with the candidates that were made of them.

    One whose texts did not all become candidates is none: what is left of it stands for itself.
    """
    found = []
    for item in items:
        if item["operation"] not in RESTRUCTURINGS:
            continue
        mark = _mark(item)
        cards = list(item["evidence_card_ids"])
        mine = tuple(
            c.candidate_id
            for c in candidates
            if c.metadata.get("restructure") == mark and c.metadata["evidence_card_ids"] == cards
        )
        if len(mine) == len(expand(item)):
            mechanism = str(item["failure_mechanism"])
            found.append(
                Restructuring(
                    item["operation"], tuple(chunks_of(item)), mine, mechanism, tuple(cards)
                )
            )
    return tuple(found)
