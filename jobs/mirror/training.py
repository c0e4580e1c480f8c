"""A round of training → metric points, update points and episode rows, step by step.

A step counts once its line stands in ``metrics.jsonl``, which is written after its traces, groups
and updates. A step that a crash undid is done again with the same values, so meeting it twice only
writes the same rows over.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.db import transaction

from intraskill_web.episodes.models import Episode
from intraskill_web.experiments.models import Round
from intraskill_web.monitoring.models import MetricPoint, UpdatePoint
from jobs.layout import RoundPlan
from jobs.mirror.episode_rows import episode_row
from jobs.mirror.lines import new_lines, place_of
from trainer.files import read_jsonl

BATCH = 1000
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
        fresh = new_lines(file, place, limit=STEPS_AT_ONCE)
        if not fresh.rows and not fresh.restarted:
            return
        lines = {value["step"]: value for _line, _end, value in fresh.rows}
        if not all(_traces(folder, step).exists() for step in lines):
            return  # a resumed trainer has just undone a step; it will come again
        groups = _groups(folder, set(lines))
        updates = [u for u in read_jsonl(folder / "updates.jsonl") if u["step"] in lines]
        with transaction.atomic():
            _write_points(round_, lines, updates)
            for step in lines:
                _write_episodes(round_, plan.run, folder, step, groups[step])
            place.save()


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
    Episode.objects.filter(experiment=round_.experiment, path=path).delete()
    rows = []
    with gzip.open(file, "rt", encoding="utf-8") as handle:
        for line, text in enumerate(handle):
            trace = json.loads(text)
            rows.append(
                episode_row(
                    trace,
                    experiment=round_.experiment,
                    round_=round_,
                    purpose="train",
                    arm="",
                    path=path,
                    line=line,
                    group=groups.get(trace["training"]["group_index"]),
                )
            )
    Episode.objects.bulk_create(rows, batch_size=BATCH)


def _traces(folder: Path, step: int) -> Path:
    return folder / "steps" / f"step-{step:06d}.jsonl.gz"
