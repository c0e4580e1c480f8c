"""Banks, curricula and candidates → parts of the document; the same in both layouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from trainer.analysis.reader import Reader
from trainer.analysis.schema_rounds import Bank, Candidate, Chunk, Coefficient
from trainer.gate.pool import load_pool
from trainer.skills.bank import load_bank
from trainer.skills.curriculum import load_curriculum
from trainer.skills.curriculum_build import next_published

Json = Mapping[str, Any]


def title_of(content: str, metadata: Json) -> str:
    """The title a chunk was given, else the heading of its text, else its first line."""
    line = content.strip().splitlines()[0] if content.strip() else ""
    return str(metadata.get("title") or line.lstrip("# ").strip())[:200]


def bank_of(
    reader: Reader, name: str, number: int, step: int | None, rho: Mapping[str, float]
) -> Bank:
    """S_number from its file. Raises InputError for a broken bank."""
    bank = load_bank(reader.note(name))
    return Bank(
        label=f"S{number}",
        number=number,
        step=step,
        bank_sha256=bank.bank_sha256,
        complete=True,
        chunks=[
            Chunk(
                skill_id=chunk.skill_id,
                title=title_of(chunk.content, chunk.metadata),
                content=chunk.content,
                version=chunk.version,
                effect=chunk.metadata.get("estimated_effect"),
                rank=chunk.metadata.get("contribution_rank"),
                rho=rho.get(chunk.skill_id),
            )
            for chunk in bank.chunks
        ],
        source=name,
    )


def named_bank(
    number: int, step: int | None, rows: Sequence[Coefficient], known: Sequence[Bank]
) -> Bank | None:
    """A bank whose file is absent, from what its gate kept; texts of unchanged chunks are known."""
    kept = sorted((r for r in rows if r.status in ("selected", "held")), key=lambda r: r.order)
    if not kept:
        return None
    texts = {c.skill_id: c for bank in known for c in bank.chunks}
    chunks = []
    for row in kept:
        former = texts.get(row.logical_chunk_id) if row.kind == "current" else None
        chunks.append(
            Chunk(
                skill_id=row.logical_chunk_id,
                title=former.title if former else row.intervention_id,
                content=former.content if former else "",
                version=former.version if former else "unpublished",
                effect=row.coefficient,
                rank=row.rank,
            )
        )
    return Bank(
        label=f"S{number}",
        number=number,
        step=step,
        bank_sha256="",
        complete=False,
        chunks=chunks,
        source=kept[0].source,
    )


def curriculum_of(reader: Reader, name: str) -> tuple[float | None, str, dict[str, float]]:
    """q, state_id and rho by chunk; nothing when the file is absent."""
    if not reader.has(name):
        return None, "", {}
    found = load_curriculum(reader.note(name))
    return found.skill_free_probability, found.state_id, dict(found.rho)


def derived_curriculum(reader: Reader, number: int) -> tuple[float | None, str, dict[str, float]]:
    """A published round's curriculum whose file is absent, built as its builder would."""
    former = f"artifacts/round-{number - 1:03d}/curriculum.json"
    bank = f"artifacts/round-{number - 1:03d}/gate/selected_skillbank.json"
    if not ((reader.root / former).is_file() and (reader.root / bank).is_file()):
        return None, "", {}
    before = load_curriculum(reader.note(former))
    made = next_published(before, load_bank(reader.note(bank)), number=number)
    return made.skill_free_probability, made.state_id, dict(made.rho)


def candidates_of(
    reader: Reader, number: int, pool_name: str, judged: Sequence[Coefficient]
) -> list[Candidate]:
    """The round's proposals with the gate's verdicts; ids alone where the pool is absent."""
    verdicts = {row.intervention_id: row for row in judged}
    if not reader.has(pool_name):
        return [
            _candidate(
                number,
                row.intervention_id,
                row.operation,
                row.logical_chunk_id if row.operation == "REWRITE" else "",
                row,
                source=row.source,
            )
            for row in judged
            if row.kind == "candidate"
        ]
    pool = load_pool(reader.note(pool_name))
    return [
        _candidate(
            number,
            c.candidate_id,
            c.operation,
            c.target_chunk_id or "",
            verdicts.get(c.candidate_id),
            content=c.content,
            metadata=c.metadata,
            source=pool_name,
        )
        for c in pool.candidates
    ]


def _candidate(
    number: int,
    name: str,
    operation: str,
    target: str,
    verdict: Coefficient | None,
    *,
    content: str = "",
    metadata: Json = MappingProxyType({}),
    source: str,
) -> Candidate:
    return Candidate(
        round=number,
        candidate_id=name,
        operation=operation,
        target_chunk_id=target,
        title=title_of(content, metadata) or name,
        content=content,
        cards=len(metadata.get("evidence_card_ids") or []),
        status=verdict.status if verdict else "pooled",
        effect=verdict.coefficient if verdict else None,
        rank=verdict.rank if verdict else None,
        source=source,
    )


def titles(reader: Reader, pool_name: str) -> dict[str, str]:
    """Titles by intervention id, from the pool a gate judged."""
    if not (reader.root / pool_name).is_file():
        return {}
    pool = load_pool(reader.root / pool_name)
    found = {c.skill_id: title_of(c.content, c.metadata) for c in pool.current}
    return found | {c.candidate_id: title_of(c.content, c.metadata) for c in pool.candidates}
