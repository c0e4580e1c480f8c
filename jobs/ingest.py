"""Trace files → episode rows, in run folders or elsewhere. Repeating adds nothing."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import transaction

from intraskill_web.episodes.models import Episode, IngestedFile
from intraskill_web.experiments.models import Experiment, Round
from jobs.mirror import EVALUATIONS
from jobs.mirror.episode_rows import episode_row
from jobs.mirror.lines import new_lines, place_of
from trainer.canonical import sha256_file
from trainer.errors import InputError
from trainer.files import read_jsonl
from trainer.rollout.traces import SCHEMA

BATCH = 1000
SUFFIXES = (".jsonl", ".jsonl.gz")


@dataclass(slots=True)
class Report:
    """What an ingest did. ``skipped`` counts files that were there already, unchanged."""

    files: int = 0
    episodes: int = 0
    turns: int = 0
    skipped: int = 0
    bad_lines: int = 0
    seconds: float = 0.0


def ingest(path: Path, experiment: Experiment) -> Report:
    """Bring rows up to every trace file at or under ``path``. Raises InputError without any."""
    started = time.monotonic()
    files = sorted(trace_files(path))
    if not files:
        raise InputError(
            "holds no episode traces", file=path, remedy=f"expected JSON lines of {SCHEMA}"
        )
    report = Report()
    for file in files:
        _ingest_file(file, experiment, report)
    report.seconds = round(time.monotonic() - started, 3)
    return report


def trace_files(path: Path) -> Iterator[Path]:
    """The files at or under ``path`` whose first line is an episode trace."""
    candidates = [path] if path.is_file() else path.rglob("*.jsonl*")
    for file in candidates:
        if file.name.endswith(SUFFIXES) and _first_is_trace(file):
            yield file


def _first_is_trace(file: Path) -> bool:
    with _open(file) as handle:
        try:
            first = json.loads(handle.readline())
        except (UnicodeDecodeError, json.JSONDecodeError):
            return False
    return isinstance(first, Mapping) and first.get("schema_version") == SCHEMA


def _ingest_file(file: Path, experiment: Experiment, report: Report) -> None:
    """A plain file from where it was read to; a compressed one whole, if new or changed."""
    place = place_of(experiment, _name(file, experiment))
    rows = _RowMaker(file, experiment, place.path)
    before = report.episodes + report.bad_lines
    if file.suffix == ".gz":
        digest = sha256_file(file)
        if place.tail_sha256 != digest:
            place.tail_sha256, place.bad_lines = digest, 0
            values = list(enumerate(_lines(file)))
            _store(rows.make(values, report), place, replace=True)
    else:
        while (fresh := new_lines(file, place, limit=BATCH)).rows or fresh.bad or fresh.restarted:
            values = [(line, value) for line, _end, value in fresh.rows]
            report.bad_lines += fresh.bad
            _store(rows.make(values, report), place, replace=fresh.restarted)
    if report.episodes + report.bad_lines > before:
        report.files += 1
    else:
        report.skipped += 1


def _store(rows: list[Episode], place: IngestedFile, *, replace: bool) -> None:
    with transaction.atomic():
        if replace:
            Episode.objects.filter(experiment=place.experiment, path=place.path).delete()
        Episode.objects.bulk_create(rows, batch_size=BATCH)
        place.save()


class _RowMaker:
    """Rows of one file's traces; knows where the file belongs."""

    def __init__(self, file: Path, experiment: Experiment, path: str) -> None:
        self.experiment, self.path = experiment, path
        self.round, self.purpose, self.arm = _belongs(file, experiment)
        self.groups = _groups(file)

    def make(self, values: Iterable[tuple[int, Any]], report: Report) -> list[Episode]:
        """A row for each value that is a trace; the others are counted as bad lines."""
        rows = []
        for line, trace in values:
            if not isinstance(trace, Mapping) or trace.get("schema_version") != SCHEMA:
                report.bad_lines += 1
                continue
            row = episode_row(
                trace,
                experiment=self.experiment,
                round_=self.round,
                purpose=self.purpose or _purpose(trace),
                arm=self.arm or _arm(trace),
                path=self.path,
                line=line,
                group=self.groups.get((trace.get("training") or {}).get("group_index", -1)),
            )
            rows.append(row)
            report.episodes += 1
            report.turns += row.turns
        return rows


def _lines(file: Path) -> Iterator[Any]:
    with _open(file) as handle:
        for line in handle:
            try:
                yield json.loads(line)
            except (UnicodeDecodeError, json.JSONDecodeError):
                yield None


def _open(file: Path) -> Any:
    return gzip.open(file) if file.suffix == ".gz" else file.open("rb")


def _name(file: Path, experiment: Experiment) -> str:
    """The file as rows name it: relative to the run folder, from elsewhere with its whole path."""
    resolved = file.resolve()
    try:
        return resolved.relative_to(experiment.folder.resolve()).as_posix()
    except ValueError:
        return str(resolved)


def _belongs(file: Path, experiment: Experiment) -> tuple[Round | None, str, str]:
    """Round, purpose and arm of a file in the run folder; nothing for files from elsewhere."""
    for round_ in experiment.rounds.all():
        folder = round_.folder.resolve()
        if not file.resolve().is_relative_to(folder):
            continue
        inside = file.resolve().parent.relative_to(folder).as_posix()
        purpose, arm = EVALUATIONS.get(inside, ("", ""))
        return round_, purpose, arm
    return None, "", ""


def _groups(file: Path) -> dict[int, Mapping[str, Any]]:
    """The group lines beside a step's traces, by group index."""
    lines = file.parent.parent / "groups.jsonl"
    if file.parent.name != "steps" or not lines.exists():
        return {}
    return {line["group_index"]: line for line in read_jsonl(lines)}


def _purpose(trace: Mapping[str, Any]) -> str:
    if trace.get("training"):
        return "train"
    return "test" if trace["job"]["split"] == "test" else _arm(trace)


def _arm(trace: Mapping[str, Any]) -> str:
    if trace.get("training"):
        return ""
    provider = trace["provenance"]["skills"].get("provider")
    known = {"none": "bare", "json_skillbank": "full", "assigned_json_skillbank": "masked"}
    return known.get(str(provider), "")
