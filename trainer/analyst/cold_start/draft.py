"""The draft: at most sixteen chunks, each resting on clusters, none of them judged yet."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from trainer.analyst.cold_start.clusters import shape_errors, texts
from trainer.analyst.compiler.style import Style
from trainer.analyst.firewall import Firewall, GoldFacts
from trainer.canonical import fingerprint, utc_now
from trainer.gate.pool import pool_document
from trainer.skills.bank import SCHEMA as BANK_SCHEMA
from trainer.skills.bank import parse_bank

Row = dict[str, Any]
DRAFT_SCHEMA = "shopsimrl-initial-skill-draft-v2"
DRAFT_BANK_VERSION = "cold-start-draft-pre-validation"
MOST_CHUNKS = 16
#: what a chunk's metadata say only before it was judged
UNJUDGED = ("draft_only", "validation_result")
TEXTS = ("title", "workflow_stage", "applicable_when", "verification", "common_failure")


def chunk_id(title: str, cluster_ids: Sequence[str]) -> str:
    """A slug of an ASCII title; for any other ``chunk-`` and the hash of title and evidence."""
    if title.isascii() and (slug := re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")):
        return slug
    evidence = {"title": title, "evidence_cluster_ids": sorted(cluster_ids)}
    return "chunk-" + fingerprint(evidence)[:12]


def draft_errors(
    result: Mapping[str, Any],
    clusters: Mapping[str, Row],
    *,
    firewall: Firewall,
    facts: Mapping[str, Sequence[GoldFacts]],
    style: Style,
    most: int = MOST_CHUNKS,
) -> list[str]:
    """Every way in which a global compilation breaks its contract. ``facts`` are those of all
    traces behind each cluster."""
    chunks, rest = result.get("chunks"), result.get("evidence_only_cluster_ids")
    if not isinstance(chunks, list) or not all(isinstance(item, dict) for item in chunks):
        return ["chunks must be a list of objects"]
    if not isinstance(rest, list) or texts(rest) != rest:
        return ["evidence_only_cluster_ids must be a list of cluster ids"]
    errors = []
    if not 1 <= len(chunks) <= most:
        errors.append(f"{len(chunks)} chunks, from 1 to {most} are allowed")
    uses = Counter(rest)
    names: Counter[str] = Counter()
    for number, chunk in enumerate(chunks):
        where = f"chunks[{number}]"
        broken = shape_errors(chunk, TEXTS, "evidence_cluster_ids", where)
        errors += broken
        cited = texts(chunk.get("evidence_cluster_ids"))
        uses.update(cited)
        if broken:
            continue
        names[chunk_id(chunk["title"], cited)] += 1
        behind = [each for name in cited for each in facts.get(name, ())]
        told = {name: chunk[name] for name in (*TEXTS, "procedure")}
        rules = dict.fromkeys(finding.rule for finding in firewall.candidate(told, behind))
        errors += [f"{where}: firewall: {rule}" for rule in rules]
        errors += [f"{where}: {problem}" for problem in style.errors(chunk)]
    errors += [f"two chunks have the id {name!r}" for name, n in names.items() if n > 1]
    errors += [f"unknown cluster id {name!r}" for name in uses if name not in clusters]
    errors += [f"cluster {name!r} is used {n} times" for name, n in uses.items() if n > 1]
    return errors + [
        f"cluster {name!r} is neither cited nor listed as evidence only"
        for name in clusters
        if name not in uses
    ]


def draft_document(result: Mapping[str, Any], style: Style, *, budget: int) -> Row:
    """``initial_skill_draft.json``."""
    chunks = []
    for order, item in enumerate(result["chunks"], 1):
        cited = sorted(item["evidence_cluster_ids"])
        content = style.render(item)
        chunks.append(
            {
                "chunk_id": chunk_id(item["title"], cited),
                "draft_order": order,
                **{name: item[name] for name in (*TEXTS, "procedure")},
                "content": content,
                "content_sha256": fingerprint(content),
                "evidence_cluster_ids": cited,
            }
        )
    document: Row = {
        "schema_version": DRAFT_SCHEMA,
        "created_at": utc_now(),
        "active_skill_budget": min(budget, len(chunks)),
        "gate_status": {"gate_a": "not_run", "gate_b": "not_run"},
        "chunks": chunks,
        "evidence_only_cluster_ids": sorted(result["evidence_only_cluster_ids"]),
    }
    kept = {key: value for key, value in document.items() if key != "created_at"}
    return {**document, "draft_sha256": fingerprint(kept)}


def draft_pool(draft: Mapping[str, Any], *, checkpoint: str) -> Row:
    """The pool by which a gate judges a draft: its chunks as they are, and nothing proposed.

    Raises InputError when the draft's bank breaks a rule.
    """
    bank = parse_bank(draft_bank(draft))
    chunks = tuple(
        replace(chunk, metadata={k: v for k, v in chunk.metadata.items() if k not in UNJUDGED})
        for chunk in bank.chunks
    )
    return pool_document(
        round_id="cold-start",
        proposal_checkpoint=checkpoint,
        bank=replace(bank, chunks=chunks),
        candidates=(),
    )


def draft_bank(draft: Mapping[str, Any]) -> Row:
    """The bank of a draft: every chunk active and marked as unjudged, in the draft's order."""
    return {
        "schema_version": BANK_SCHEMA,
        "bank_version": DRAFT_BANK_VERSION,
        "metadata": {
            "draft_schema_version": draft["schema_version"],
            "draft_sha256": draft["draft_sha256"],
            "gate_status": dict(draft["gate_status"]),
            "active_skill_budget": draft["active_skill_budget"],
        },
        "skills": [
            {
                "skill_id": chunk["chunk_id"],
                "version": "draft-1",
                "enabled": True,
                "content": chunk["content"],
                "metadata": {
                    "title": chunk["title"],
                    "workflow_stage": chunk["workflow_stage"],
                    "draft_only": True,
                    "draft_order": chunk["draft_order"],
                    "evidence_cluster_ids": list(chunk["evidence_cluster_ids"]),
                    "validation_result": None,
                },
            }
            for chunk in draft["chunks"]
        ],
    }
