"""A round of training → metric points, update points and episode rows, step by step.

A step counts once its line stands in ``metrics.jsonl``, which is written after its traces and
groups. Updates and times of steps have files of their own, because slime tells them later. A step
that a crash undid is done again, so meeting it twice only writes its rows over.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
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
Lines = Collection[Mapping[str, Any]]


def follow(round_: Round, plan: RoundPlan) -> None:
    """Make rows of every step and update that was finished since the last call."""
    _follow_steps(round_, plan)
    _follow_lines(round_, plan, "updates.jsonl", _write_updates)
    _follow_lines(round_, plan, "perf.jsonl", _write_metrics)


def _follow_steps(round_: Round, plan: RoundPlan) -> None:
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
        with transaction.atomic():
            _write_metrics(round_, lines.values())
            for step in lines:
                _write_episodes(round_, plan.run, folder, step, groups[step])
            advance(place, fresh)
            place.save()


def _follow_lines(
    round_: Round, plan: RoundPlan, name: str, write: Callable[[Round, Lines], None]
) -> None:
    """Make rows of a file's new lines; of all of them when one that was read is another now."""
    file = plan.folder / "train" / name
    place = place_of(round_.experiment, file.relative_to(plan.run).as_posix())
    if not file.exists() and not place.size:
        return
    for fresh in chunks(file, place):
        with transaction.atomic():
            write(round_, list(_values(fresh.lines)))
            advance(place, fresh)
            place.save()


def _values(lines: Iterable[bytes]) -> Iterator[Mapping[str, Any]]:
    """The lines that can be read; the file is ours, so another one is damage, and is left out."""
    for line in lines:
        try:
            yield parse(line)
        except InputError:
            LOG.warning("a line of a round's training is not JSON: %r", line[:80])


def _groups(folder: Path, steps: set[int]) -> dict[int, dict[int, Mapping[str, Any]]]:
    """The group lines of some steps, by step and group index; of a repeated line the last."""
    found: dict[int, dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for line in read_jsonl(folder / "groups.jsonl"):
        if line["step"] in steps:
            found[line["step"]][line["group_index"]] = line
    return found


def _write_metrics(round_: Round, lines: Lines) -> None:
    MetricPoint.objects.bulk_create(
        [
            MetricPoint(
                experiment=round_.experiment,
                round=round_,
                name=name,
                step=line["step"],
                value=value,
            )
            for line in lines
            for name, value in _named(line)
        ],
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["experiment", "name", "step"],
        update_fields=["value", "round"],
    )


def _write_updates(round_: Round, lines: Lines) -> None:
    UpdatePoint.objects.bulk_create(
        [
            UpdatePoint(
                experiment=round_.experiment,
                round=round_,
                name=name,
                update=line["update"],
                step=line["step"],
                value=value,
            )
            for line in lines
            for name, value in line["metrics"].items()
        ],
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["experiment", "name", "update"],
        update_fields=["value", "round", "step"],
    )


def _named(line: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    yield from line["metrics"].items()
    for name, seconds in line.get("seconds", {}).items():
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
