"""Bank and curriculum files → rows. Publishing again changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from intraskill_web.core.text import storable
from intraskill_web.experiments.models import Experiment, Round
from intraskill_web.skills.models import (
    ChunkRevision,
    Curriculum,
    SkillVersion,
    SkillVersionChunk,
)
from trainer.skills.bank import load_bank
from trainer.skills.curriculum import load_curriculum
from trainer.skills.types import Chunk


def publish_bank(
    experiment: Experiment, path: Path, *, number: int, from_round: Round | None
) -> SkillVersion:
    """The skill version S<number> of a bank file. Raises InputError for a broken bank."""
    bank = load_bank(path)
    version, _made = SkillVersion.objects.update_or_create(
        experiment=experiment,
        number=number,
        defaults={
            "label": f"S{number}",
            "bank_sha256": bank.bank_sha256,
            "path": path.relative_to(experiment.folder).as_posix(),
            "from_round": from_round,
        },
    )
    version.entries.all().delete()
    SkillVersionChunk.objects.bulk_create(
        SkillVersionChunk(
            version=version,
            revision=_revision(experiment, chunk),
            order=order,
            effect=chunk.metadata.get("estimated_effect"),
        )
        for order, chunk in enumerate(bank.chunks)
    )
    return version


def publish_curriculum(round_: Round, path: Path) -> Curriculum:
    """The round's curriculum; its version's chunks get the rho they train with."""
    found = load_curriculum(path)
    version = SkillVersion.objects.get(experiment=round_.experiment, number=round_.number)
    mapping: Mapping[str, float] = found.document["source"].get("probability_mapping") or {}
    chunks = [
        {
            "skill_id": entry.chunk.skill_id,
            "rho": entry.inclusion_probability,
            "effect": entry.contribution,
        }
        for entry in found.entries
    ]
    for entry in version.entries.select_related("revision"):
        entry.rho = found.rho.get(entry.revision.skill_id)
        entry.save(update_fields=["rho"])
    curriculum, _made = Curriculum.objects.update_or_create(
        round=round_,
        defaults={
            "version": version,
            "state_id": found.state_id,
            "schema": found.document["schema_version"],
            "q": found.skill_free_probability,
            "rho_min": mapping.get("rho_min"),
            "rho_max": mapping.get("rho_max"),
            "chunks": chunks,
            "path": path.relative_to(round_.experiment.folder).as_posix(),
        },
    )
    return curriculum


def _revision(experiment: Experiment, chunk: Chunk) -> ChunkRevision:
    revision, _made = ChunkRevision.objects.get_or_create(
        experiment=experiment,
        skill_id=chunk.skill_id,
        content_sha256=chunk.content_sha256,
        defaults={
            "content": storable(chunk.content),
            "version": storable(chunk.version),
            "title": title_of(chunk.content, chunk.metadata),
        },
    )
    return revision


def title_of(content: str, metadata: Mapping[str, object]) -> str:
    """A chunk's title: the one it was given, else the heading of its text, else its first line."""
    given = metadata.get("title")
    line = content.strip().splitlines()[0] if content.strip() else ""
    return storable(str(given or line.lstrip("# ").strip()))[:200]
