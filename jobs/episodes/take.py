"""The lines of a trace file into the index, chunk by chunk; what is no episode is listed.

Rows and the place up to which the file was read change in one transaction, so nothing is read twice
or left out, whenever this is killed. What is taken anew replaces its rows line by line, so that an
episode that is still there keeps its id and its replays.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from django.db import transaction

from intraskill_web.episodes.models import BadLine, IngestedFile
from intraskill_web.episodes.prepare import Groups, Outcome, prepare_lines
from intraskill_web.episodes.publish import publish, replaced
from intraskill_web.experiments.models import Experiment
from jobs.episodes.lines import Chunk, advance, chunks, place_of
from trainer.canonical import sha256_file


@dataclass(frozen=True, slots=True)
class Source:
    """A file, as rows name it, and what its episodes are for; empty purpose: the traces say."""

    file: Path
    path: str
    round_id: int | None = None
    purpose: str = ""
    arm: str = ""
    groups: Groups = field(default_factory=dict)


def store(place: IngestedFile, chunk: Chunk, outcome: Outcome, source: Source) -> None:
    """Rows of a chunk and the place behind it, together."""
    experiment_id = place.experiment_id
    with transaction.atomic():
        if chunk.restarted:
            BadLine.objects.filter(file__experiment=experiment_id, file__path=source.path).delete()
        shared = {
            "experiment_id": experiment_id,
            "round_id": source.round_id,
            "path": source.path,
        }
        end = None if chunk.last else chunk.first + len(chunk.lines)
        kept = replaced(outcome.entries, experiment_id, source.path, chunk.first, end)
        publish(outcome.entries, shared, outcome.masks, kept)
        advance(place, chunk)
        place.bad_lines += len(outcome.bad)
        place.save()
        BadLine.objects.bulk_create(
            BadLine(file=place, line=line, reason=reason, excerpt=excerpt)
            for line, reason, excerpt in outcome.bad
        )


def follow_file(experiment: Experiment, source: Source, *, anew: bool = False) -> int:
    """Bring the rows of a file up to it; returns how many were made."""
    place = place_of(experiment, source.path)
    made = 0
    for chunk in chunks(source.file, place, anew=anew):
        outcome = prepare_lines(chunk.first, chunk.lines, source.purpose, source.arm, source.groups)
        store(place, chunk, outcome, source)
        made += len(outcome.entries)
    return made


def retake_file(experiment: Experiment, source: Source) -> int:
    """Make the rows of a finished file anew, whatever was made of it before."""
    with transaction.atomic():
        made = follow_file(experiment, source, anew=True)
        note_file(place_of(experiment, source.path), source.file)
        return made


def note_file(place: IngestedFile, file: Path) -> None:
    """Remember the file itself, read to its end: equal again means nothing to do."""
    facts = file.stat()
    place.file_size, place.file_mtime_ns = facts.st_size, facts.st_mtime_ns
    place.file_sha256 = sha256_file(file)
    place.save()


def unchanged(place: IngestedFile, file: Path) -> bool:
    """Whether the file is the one that was read to its end: by size and time, else by its hash."""
    facts = file.stat()
    if not place.file_sha256 or place.file_size != facts.st_size:
        return False
    if place.file_mtime_ns == facts.st_mtime_ns:
        return True
    return place.file_sha256 == sha256_file(file)
