"""A round of training → metric points, update points and episode rows, step by step.

A step counts once its line stands in ``metrics.jsonl``, which is written after its traces, groups
and updates. A step that a crash undid is done again with the same values, so meeting it twice only
writes the same rows over.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from django.db import transaction

from intraskill_web.episodes.prepare import parse
from intraskill_web.experiments.models import Round
from intraskill_web.monitoring.models import MetricPoint, UpdatePoint
from jobs.episodes.lines import advance, chunks, place_of
from jobs.episodes.take import Source, retake_file
from jobs.layout import RoundPlan
from trainer.errors import InputError
from trainer.files import read_jsonl

BATCH = 1000
LOG = logging.getLogger(__name__)
STEPS_AT_ONCE = 8


def follow(round_: Round, plan: RoundPlan) -> None:
    """Make rows of every step that was finished since the last call."""
    folder = plan.folder / "train"
    file = folder / "metrics.jsonl"
    if not file.exists():
        return
    path = file.relative_to(plan.run).as_posix()
    while True:
        place = place_of(round_.experiment, path)
        fresh = next(chunks(file, place, limit=STEPS_AT_ONCE), None)
        if fresh is None:
            return
        lines = {value["step"]: value for value in _values(fresh.lines)}
        if not all(_traces(folder, step).exists() for step in lines):
            return  # a resumed trainer has just undone a step; it will come again
        groups = _groups(folder, set(lines))
        updates = [u for u in read_jsonl(folder / "updates.jsonl") if u["step"] in lines]
        with transaction.atomic():
            _write_points(round_, lines, updates)
            for step in lines:
                _write_episodes(round_, plan.run, folder, step, groups[step])
            advance(place, fresh)
            place.save()


def _values(lines: Iterable[bytes]) -> Iterator[Mapping[str, Any]]:
    """The lines that can be read; the file is ours, so another one is damage, and is left out."""
    for line in lines:
        try:
            yield parse(line)
        except InputError:
            LOG.warning("a line of metrics.jsonl is not JSON: %r", line[:80])


def _groups(folder: Path, steps: set[int]) -> dict[int, dict[int, Mapping[str, Any]]]:
    """The group lines of some steps, by step and group index; of a repeated line the last."""
    found: dict[int, dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for line in read_jsonl(folder / "groups.jsonl"):
        if line["step"] in steps:
            found[line["step"]][line["group_index"]] = line
    return found


def _write_points(
    round_: Round, lines: Mapping[int, Mapping[str, Any]], updates: list[Mapping[str, Any]]
) -> None:
    experiment = round_.experiment
    MetricPoint.objects.bulk_create(
        [
            MetricPoint(experiment=experiment, round=round_, name=name, step=step, value=value)
            for step, line in lines.items()
            for name, value in _named(line)
        ],
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["experiment", "name", "step"],
        update_fields=["value", "round"],
    )
    UpdatePoint.objects.bulk_create(
        [
            UpdatePoint(
                experiment=experiment,
                round=round_,
                name=name,
                update=line["update"],
                step=line["step"],
                value=value,
            )
            for line in updates
            for name, value in line["metrics"].items()
        ],
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["experiment", "name", "update"],
        update_fields=["value", "round", "step"],
    )


def _named(line: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    yield from line["metrics"].items()
    for name, seconds in line["seconds"].items():
        yield f"perf/{name}_time", seconds


def _write_episodes(
    round_: Round,
    run: Path,
    folder: Path,
    step: int,
    groups: Mapping[int, Mapping[str, Any]],
) -> None:
    file = _traces(folder, step)
    path = file.relative_to(run).as_posix()
    source = Source(file, path, round_id=round_.pk, purpose="train", groups=groups)
    retake_file(round_.experiment, source)


def _traces(folder: Path, step: int) -> Path:
    return folder / "steps" / f"step-{step:06d}.jsonl.gz"
