"""The files of a slime round: every episode as soon as it ends, every step once it is over.

``<output>/<round>/group-…/rollout-….json`` and ``triage.json`` are the published layout, written
one by one. Once a step is over its traces, groups and metrics are also written the way the embedded
engine does (``steps/``, ``groups.jsonl``, ``metrics.jsonl``), so that pages, analyst and analysis
read both engines alike. That part runs in a thread of its own while slime trains.
Specification: training.md §4.3.3, §4.7; docs/design/architecture.md, "Run folder".
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import orjson

from trainer.canonical import safe_name
from trainer.engines.slime.groups import FinishedRollouts
from trainer.engines.slime.settings import HookSettings
from trainer.files import read_jsonl, write_jsonl
from trainer.grpo.publish import RoundFolder
from trainer.grpo.step import StepResult
from trainer.grpo.triage import Classification, triage_record
from trainer.progress import Progress
from trainer.sinks.base import MetricPoint

logger = logging.getLogger(__name__)
RETRY_FILE = "full-skill-retry.json"
PROGRESS = "progress.json"


def round_folder(settings: HookSettings, round_id: str) -> Path:
    """Where a round's training is recorded."""
    if settings.round_dir is not None:
        return settings.resolve(settings.round_dir)
    return settings.resolve(settings.training_output_dir) / safe_name(round_id)


def group_folder(settings: HookSettings, round_id: str, group_index: int) -> Path:
    """Where a group is recorded."""
    return round_folder(settings, round_id) / f"group-{group_index:09d}"


def write_trace(path: Path, trace: Mapping[str, Any]) -> None:
    """Publish one trace by a rename.

    Its numbers were checked where they came in: log-probabilities and rewards are finite, and what
    a model wrote holds none that JSON lacks. Not flushed to disk one by one: what a crash of the
    host may lose belongs to a step that is played again.
    """
    data = orjson.dumps(trace)
    partial = f"{path.parent}/.{path.name}.{os.getpid()}.tmp"
    try:
        _write(partial, data)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(partial, data)
    os.rename(partial, path)  # noqa: PTH104 - hundreds a step: path objects would cost the most


def _write(name: str, data: bytes) -> None:
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]
    finally:
        os.close(handle)


def write_triage(folder: Path, finished: FinishedRollouts) -> None:
    """Publish ``triage.json`` of a group, and its retry's trace."""
    retry = finished.retry
    path = folder / RETRY_FILE
    if retry is None:
        path.unlink(missing_ok=True)  # of an attempt that a crash undid
    else:
        write_trace(path, retry.result.trace)
    write_trace(
        folder / "triage.json",
        triage_record(
            finished.group,
            None if retry is None else retry.result,
            cast(Classification, finished.label),
            finished.curriculum,
            traces_path=str(path.absolute()),
        ),
    )


class Publisher:
    """Writes finished steps in their order, in the background."""

    def __init__(self) -> None:
        self._writer: ThreadPoolExecutor | None = None
        self._last: Future[None] | None = None
        self._begun: set[Path] = set()
        self._progress: Progress | None = None

    def publish(
        self, folder: Path, step: int, result: StepResult, point: MetricPoint, *, of: int | None
    ) -> None:
        """Hand a step over. Raises what the step before failed with, if it did.

        ``of`` is the number of the round's steps; where it is known, progress is told too.
        """
        self.wait()
        if self._writer is None:
            self._writer = ThreadPoolExecutor(1, thread_name_prefix="publish")
        self._last = self._writer.submit(self._publish, folder, step, result, point, of)

    def _publish(
        self, folder: Path, step: int, result: StepResult, point: MetricPoint, of: int | None
    ) -> None:
        if folder not in self._begun:
            forget_steps_from(folder, step)
            self._begun.add(folder)
        RoundFolder(folder).publish(step, result, updates=[], metrics=point)
        if of is not None:
            self._tell(folder, of)

    def _tell(self, folder: Path, total: int) -> None:
        done = sum(1 for _ in read_jsonl(folder / "metrics.jsonl"))
        if self._progress is None or self._progress.path != folder / PROGRESS:
            self._progress = Progress(folder / PROGRESS, unit="step", total=total, done=done - 1)
        self._progress.update(done)

    def wait(self) -> None:
        """Wait for the step handed over last; raises what it failed with."""
        last, self._last = self._last, None
        if last is not None:
            last.result()

    def close(self) -> None:
        """Finish what was handed over."""
        if self._writer is not None:
            self._writer.shutdown(wait=True)
            self._writer = None
        if self._last is not None and self._last.exception() is not None:
            logger.error("publishing the last step failed", exc_info=self._last.exception())
        self._last = None


def forget_steps_from(folder: Path, step: int) -> None:
    """Undo steps that are about to be done again: their lines and their traces.

    Updates are told to the launcher, which keeps them (``round_log``).
    """
    for name in ("groups.jsonl", "metrics.jsonl"):
        path = folder / name
        lines = list(read_jsonl(path))
        kept = [line for line in lines if line["step"] < step]
        if len(kept) < len(lines):
            write_jsonl(path, kept)
    for path in (folder / "steps").glob("step-*.jsonl.gz"):
        if int(path.name[5:11]) >= step:
            path.unlink()
