"""From a valid compilation to the candidates of a pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.analyst.compiler.style import Style
from trainer.canonical import fingerprint
from trainer.gate.pool import Candidate, candidate_id
from trainer.skills.types import Chunk

Item = Mapping[str, Any]


def cluster_id(candidate: str) -> str:
    """The id of the cluster of cards behind a candidate: the same digits."""
    return "cluster-" + candidate.removeprefix("online-")


def assemble(
    items: Sequence[Item],
    *,
    style: Style,
    active: Sequence[Chunk],
    task_of: Mapping[str, int],
    minimum_tasks: int,
    proposal_checkpoint: str,
    provenance: str,
) -> tuple[Candidate, ...]:
    """The candidates of valid items. ``task_of`` maps card ids to tasks; a candidate that rests on
    fewer than ``minimum_tasks`` different ones is marked ``low_support``."""
    by_id = {chunk.skill_id: chunk for chunk in active}
    candidates = []
    for item in items:
        content = style.render(item)
        target = item.get("target_chunk_id") or None
        name = candidate_id(item["operation"], target, content)
        tasks = {task_of[card] for card in item["evidence_card_ids"]}
        candidates.append(
            Candidate(
                candidate_id=name,
                operation=item["operation"],
                target_chunk_id=target,
                content=content,
                version=_version(by_id.get(target or "")),
                metadata={
                    "title": item["title"],
                    "failure_mechanism": item["failure_mechanism"],
                    "evidence_card_ids": list(item["evidence_card_ids"]),
                    "consolidation_cluster_id": cluster_id(name),
                    "proposal_checkpoint": proposal_checkpoint,
                    "content_sha256": fingerprint(content),
                    "distinct_tasks": len(tasks),
                    "low_support": len(tasks) < minimum_tasks,
                    "provenance": provenance,
                    **{key: item[key] for key in ("restructure", "probe") if key in item},
                },
            )
        )
    return tuple(candidates)


def _version(target: Chunk | None) -> str:
    """A number of its own for every accepted text: the target's, counted on."""
    if target is None:
        return "1"
    return str(int(target.version) + 1) if target.version.isdecimal() else f"{target.version}+1"
