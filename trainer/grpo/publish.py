"""The files of a training round, written so that a crash at any instant can be undone.

A step's files appear in this order: its traces (one compressed file, by rename), its lines in
``groups.jsonl``, ``updates.jsonl`` and ``metrics.jsonl``, and last ``state.pt``, which holds the
weights, the optimiser, the counters and how long each of those files then was. Whatever is longer
than the state says belongs to a step that did not end: it is cut off and the step is done again,
with the same result. Who reads the files while a run is going on may see such lines twice.
Contract: docs/design/architecture.md, "Run folder".
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainer.errors import InputError
from trainer.files import append_jsonl, write_bytes
from trainer.grpo.metrics import FinishedGroup
from trainer.grpo.step import StepResult
from trainer.rollout import live
from trainer.rollout.types import EpisodeResult
from trainer.sinks.base import MetricPoint
from trainer.sinks.file import FileSink

APPENDED = ("groups.jsonl", "updates.jsonl", "metrics.jsonl")
COMPRESSION = 6  # on traces nearly as fast as the lowest level, at half the size


@dataclass(slots=True)
class Counters:
    """Where a run stands. All of them count over the whole experiment."""

    step: int = 0
    next_group: int = 0
    updates: int = 0
    failed_groups_in_a_row: int = 0


class RoundFolder:
    """The output folder of one round's training."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def state(self) -> Path:
        """The resume point."""
        return self.path / "state.pt"

    @property
    def checkpoint(self) -> Path:
        """The finished round's frozen checkpoint."""
        return self.path / "checkpoint"

    def trace_file(self, step: int) -> Path:
        """Every episode of a step, groups in order, retries last."""
        return self.path / "steps" / f"step-{step:06d}.jsonl.gz"

    def publish(
        self,
        step: int,
        result: StepResult,
        *,
        updates: Sequence[Mapping[str, Any]],
        metrics: MetricPoint,
    ) -> None:
        """Write everything of a step except the state."""
        episodes = [
            episode for item in result.groups for episode in result.results[item.group.group_index]
        ]
        write_traces(self.trace_file(step), [*episodes, *result.retries])
        append_jsonl(self.path / "groups.jsonl", _group_lines(step, result))
        append_jsonl(self.path / "updates.jsonl", updates)
        FileSink(self.path / "metrics.jsonl").log(metrics)
        live.forget(self.path, up_to_step=step)

    def resume_record(self, counters: Counters) -> dict[str, Any]:
        """What the state must remember besides weights and optimiser."""
        lengths = {name: _length(self.path / name) for name in APPENDED}
        return {"counters": asdict(counters), "lengths": lengths}

    def rewind(self, record: Mapping[str, Any]) -> Counters:
        """Undo whatever was written after the state. Raises InputError when a file got shorter."""
        counters = Counters(**record["counters"])
        self._cut(record["lengths"], counters.step)
        return counters

    def clear(self) -> None:
        """Undo everything: there is no state yet."""
        self._cut(dict.fromkeys(APPENDED, 0), last_step=-1)

    def _cut(self, lengths: Mapping[str, int], last_step: int) -> None:
        live.forget(self.path)
        for name, length in lengths.items():
            path = self.path / name
            present = _length(path)
            if present < length:
                raise InputError(
                    f"has {present} bytes, but the state remembers {length}",
                    file=path,
                    remedy="Restore the file, or start the round anew in an empty folder",
                )
            if present > length:
                os.truncate(path, length)
        for path in sorted((self.path / "steps").glob("step-*.jsonl.gz")):
            if last_step < 0 or int(path.name[5:11]) > last_step:
                path.unlink()


def write_traces(path: Path, episodes: Iterable[EpisodeResult]) -> None:
    """Publish traces as compressed JSON lines; equal traces give equal bytes."""
    text = "".join(
        json.dumps(episode.trace, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"
        for episode in episodes
    )
    buffer = io.BytesIO()
    with gzip.GzipFile(
        filename="", fileobj=buffer, mode="wb", compresslevel=COMPRESSION, mtime=0
    ) as handle:
        handle.write(text.encode())
    write_bytes(path, buffer.getvalue())


def read_traces(path: Path) -> Iterator[dict[str, Any]]:
    """The traces of a step file, in order. Raises InputError when it is missing."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as handle:
            yield from map(json.loads, handle)
    except FileNotFoundError as error:
        raise InputError("no such trace file", file=path) from error


def _group_lines(step: int, result: StepResult) -> list[dict[str, Any]]:
    return [_group_line(step, item, result) for item in result.groups]


def _group_line(step: int, item: FinishedGroup, result: StepResult) -> dict[str, Any]:
    group, retry = item.group, item.retry
    return {
        "step": step,
        "group_index": group.group_index,
        "task_id": group.task_id,
        "treatment": {
            "mode": group.treatment.mode,
            "skill_ids": list(group.treatment.skill_ids),
        },
        "sample_indices": list(group.sample_indices),
        "rewards": [outcome.reward.get("reward") for outcome in group.outcomes],
        "successes": [outcome.success for outcome in group.outcomes],
        "scored": [outcome.scored for outcome in group.outcomes],
        "all_wrong": group.all_wrong,
        "verdict": item.decision.verdict,
        "reason": item.decision.reason,
        "admitted": item.decision.kept,
        "advantages": result.advantages.get(group.group_index),
        "classification": item.classification,
        "full_skill_retry": (
            None
            if retry is None
            else {
                "episode_id": retry.trace["episode_id"],
                "reward": dict(retry.reward),
                "scored": retry.scored,
                "success": retry.success,
            }
        ),
        "tokens_sha256": _tokens_hash(result.results[group.group_index]),
    }


def _tokens_hash(episodes: Sequence[EpisodeResult]) -> str:
    """Hash over every token of a group: two runs with equal lines did the same, word by word."""
    digest = hashlib.sha256()
    for episode in episodes:
        ids = episode.tokens.token_ids if episode.tokens else ()
        digest.update(struct.pack(f"<q{len(ids)}q", len(ids), *ids))
    return digest.hexdigest()


def _length(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
