"""Trace files → the episode index, in run folders or elsewhere. Repeating adds nothing.

Lines are prepared in processes of their own while this one writes, so that both cores work. Files
are taken in the order of their names and chunks in order, so a rebuild makes the same rows.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from django.db import connection

from intraskill_web.episodes.models import IngestedFile
from intraskill_web.episodes.prepare import Outcome, prepare_lines
from intraskill_web.episodes.publish import optimise
from intraskill_web.experiments.models import Experiment
from jobs.episodes.lines import Chunk, chunks, place_of
from jobs.episodes.sources import sources
from jobs.episodes.take import Source, note_file, store, unchanged
from trainer.cores import cores
from trainer.errors import InputError
from trainer.rollout.traces import SCHEMA

POOL_FROM = 8 * 2**20  # bytes to read from which processes are worth their start
MANY = 5_000  # new episodes after which the planner's statistics are made anew


@dataclass(slots=True)
class Report:
    """What an ingest did. ``skipped`` counts files that were there already, unchanged; ``torn``
    files whose last line has no end yet; ``problems`` files that could not be read to their end.
    """

    files: int = 0
    episodes: int = 0
    turns: int = 0
    skipped: int = 0
    bad_lines: int = 0
    torn: int = 0
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(slots=True)
class Tick:
    """How far an ingest is, in bytes of the files; ``eta`` is None before anything was done."""

    done: int
    total: int
    report: Report
    started: float

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    @property
    def eta(self) -> float | None:
        return self.seconds / self.done * (self.total - self.done) if self.done else None


def ingest(
    path: Path,
    experiment: Experiment,
    *,
    rebuild: bool = False,
    processes: int | None = None,
    tell: Callable[[Tick], None] = lambda tick: None,
) -> Report:
    """Bring rows up to every trace file at or under ``path``. Raises InputError without any.

    ``rebuild`` makes the rows of these files anew. ``tell`` hears how far it is after each chunk.
    """
    report = Report()
    found = list(sources(path, experiment))
    if not found:
        raise InputError(
            "holds no episode traces", file=path, remedy=f"expected JSON lines of {SCHEMA}"
        )
    run = _Run(experiment, report, tell, sum(s.file.stat().st_size for s in found), rebuild)
    if processes is None:
        processes = cores() if run.total >= POOL_FROM else 0
    if processes:
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            run.take(found, pool, processes)
    else:
        run.take(found, None, 0)
    if report.episodes >= MANY:
        optimise()
    report.seconds = round(time.monotonic() - run.started, 3)
    return report


@dataclass(slots=True)
class _Item:
    """A chunk on its way, or (without one) the end of its file."""

    source: Source
    place: IngestedFile
    chunk: Chunk | None
    outcome: Future[Outcome] | None = None


@dataclass(slots=True)
class _Run:
    experiment: Experiment
    report: Report
    tell: Callable[[Tick], None]
    total: int
    anew: bool
    done: int = 0
    started: float = field(default_factory=time.monotonic)
    made: int = 0  # of the file in hand

    def take(self, found: list[Source], pool: ProcessPoolExecutor | None, ahead: int) -> None:
        """Store everything in order, with ``ahead`` chunks a process in preparation."""
        waiting: deque[_Item] = deque()
        inverted = connection.vendor == "postgresql"
        for item in self._items(found):
            if pool is not None and item.chunk is not None:
                arguments = _arguments(item.source, item.chunk)
                item.outcome = pool.submit(prepare_lines, *arguments, inverted=inverted)
            waiting.append(item)
            while len(waiting) > 3 * ahead:
                self._store(waiting.popleft())
        while waiting:
            self._store(waiting.popleft())

    def _items(self, found: list[Source]) -> Iterator[_Item]:
        for source in found:
            place = place_of(self.experiment, source.path)
            if self.anew or not unchanged(place, source.file):
                try:
                    for chunk in chunks(source.file, place, anew=self.anew):
                        yield _Item(source, place, chunk)
                except (OSError, EOFError) as error:
                    self.report.problems.append(f"{source.path}: {error}")
            yield _Item(source, place, None)

    def _store(self, item: _Item) -> None:
        if item.chunk is None:
            self._finish(item)
            return
        outcome = (
            item.outcome.result()
            if item.outcome is not None
            else prepare_lines(*_arguments(item.source, item.chunk))
        )
        store(item.place, item.chunk, outcome, item.source)
        self.report.episodes += len(outcome.entries)
        self.report.turns += outcome.turns
        self.report.bad_lines += len(outcome.bad)
        self.made += len(item.chunk.lines)
        size = item.source.file.stat().st_size
        if item.source.file.suffix not in (".gz", ".zst"):
            self._say(self.done + min(item.chunk.end, size))

    def _finish(self, item: _Item) -> None:
        source, place = item.source, item.place
        size = source.file.stat().st_size
        if self.made:
            self.report.files += 1
        else:
            self.report.skipped += 1
        torn = source.file.suffix == ".jsonl" and size > place.size
        self.report.torn += torn
        if place.pk and not torn and (self.made or not place.file_sha256):
            note_file(place, source.file)
        self.made = 0
        self.done += size
        self._say(self.done)

    def _say(self, done: int) -> None:
        self.tell(Tick(done, self.total, self.report, self.started))


def _arguments(source: Source, chunk: Chunk) -> tuple[Any, ...]:
    return chunk.first, chunk.lines, source.purpose, source.arm, source.groups
