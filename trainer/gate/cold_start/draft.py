"""The draft of a first skill: the analyst's chunks, as a draft file and as a bank.

Both must say the same: same chunks, same order, same texts, same budget. Specification:
gate-analysis.md §10.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.canonical import fingerprint
from trainer.errors import InputError
from trainer.files import read_json
from trainer.gate.slots import Intervention, Layout, Slot
from trainer.reading import Node, read_node
from trainer.skills.bank import SkillBank, parse_bank
from trainer.skills.types import Chunk

SCHEMA = "shopsimrl-initial-skill-draft-v2"
MAX_CHUNKS = 16


@dataclass(frozen=True, slots=True)
class Draft:
    """A drafted skill: its chunks in order, how many may become active, and its hash."""

    chunks: tuple[Chunk, ...]
    budget: int
    draft_sha256: str

    @property
    def layout(self) -> Layout:
        """One slot a chunk; all of them are additions."""
        return Layout(
            tuple(Slot(chunk.skill_id, None, (chunk.skill_id,)) for chunk in self.chunks),
            {
                chunk.skill_id: Intervention("candidate", "ADD", chunk.skill_id, order, chunk)
                for order, chunk in enumerate(self.chunks, 1)
            },
        )


def load_draft(bank: Path, draft: Path | None, *, budget: int | None = None) -> Draft:
    """Read the bank of a draft and check it against the draft itself, where that is given."""
    document = None if draft is None else read_node(draft)
    return parse_draft(read_json(bank), budget=budget, draft=document, file=bank)


def parse_draft(
    document: Mapping[str, Any],
    *,
    budget: int | None = None,
    draft: Node | None = None,
    file: Path | None = None,
) -> Draft:
    """A draft from its bank: 1 to 16 records, all ``draft_only``, and one budget.

    Raises InputError when a rule is broken, when ``draft`` holds other chunks than the bank, or
    when draft, bank and ``budget`` name different budgets.
    """
    bank = parse_bank(document, file=file)
    if not 1 <= len(bank.chunks) <= MAX_CHUNKS:
        raise InputError(
            f"a draft has 1 to {MAX_CHUNKS} chunks",
            file=file,
            field="skills",
            value=len(bank.chunks),
        )
    active = [
        chunk.skill_id for chunk in bank.chunks if chunk.metadata.get("draft_only") is not True
    ]
    if active:
        raise InputError(
            "a draft holds only draft records", file=file, field="skills", value=active
        )
    if draft is not None:
        _require_same(draft, bank)
    stated = {
        "the draft bank": bank.metadata.get("active_skill_budget"),
        "the draft": None if draft is None else draft.get("active_skill_budget").value,
        "the configuration": budget,
    }
    return Draft(
        bank.chunks,
        _agreed(stated, len(bank.chunks), file),
        fingerprint(document) if draft is None else draft_hash(draft),
    )


def draft_hash(draft: Node) -> str:
    """The hash of a draft without its time. Raises InputError when it states another."""
    kept = {k: v for k, v in draft.mapping().items() if k not in ("created_at", "draft_sha256")}
    expected = fingerprint(kept)
    if draft.get("draft_sha256").value not in (None, expected):
        raise draft["draft_sha256"].error(
            f"does not match the content, whose hash is {expected}",
            "a frozen draft is never edited: make a new one",
        )
    return expected


def _require_same(draft: Node, bank: SkillBank) -> None:
    draft["schema_version"].choice(SCHEMA)
    chunks = list(draft["chunks"])
    for order, chunk in enumerate(chunks, 1):
        if chunk["draft_order"].integer() != order:
            raise chunk["draft_order"].error(f"must be {order}: the order has no gaps")
    ids = [chunk["chunk_id"].text() for chunk in chunks]
    if ids != [chunk.skill_id for chunk in bank.chunks]:
        raise draft["chunks"].error("holds other chunks, or in another order, than the draft bank")
    for item, drafted in zip(chunks, bank.chunks, strict=True):
        if item["content"].text() != drafted.content:
            raise item["content"].error("is not the text of the draft bank")


def _agreed(stated: Mapping[str, Any], chunks: int, file: Path | None) -> int:
    """The budget on which all places that state one agree."""
    given = {place: value for place, value in stated.items() if value is not None}
    budgets = [
        Node(value, file, f"active_skill_budget of {place}").integer(least=1, most=chunks)
        for place, value in given.items()
    ]
    if len(set(budgets)) != 1:
        raise InputError(
            "one budget is needed, and all places must agree",
            file=file,
            field="active_skill_budget",
            value=given or None,
        )
    return budgets[0]
