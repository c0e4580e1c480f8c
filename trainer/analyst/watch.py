"""Cards beside training: new failures are analysed while the round still goes on.

The watch looks every few seconds for groups that wait. It ends when the round's training has ended
or a stop was asked for (a signal, or the marker file), and finishes what is in work before; it
never asks again about a trace that gave an error, ``run`` does that at the end. The shop sessions
it holds are bounded by ``limits.environment_slots``. Specification: gate-analysis.md §11.5.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainer.analyst.desk import Desk, open_desk
from trainer.analyst.maker import AnalysisEnded, CardMaker
from trainer.analyst.publish import card_counts
from trainer.analyst.triage_queue import Case
from trainer.analyst.workers import Workers
from trainer.config import AnalystConfig
from trainer.errors import InputError, StopRequested
from trainer.lock import exclusive
from trainer.progress import Progress, check_stop

STOP_MARKER = "stop"
#: whose lock a watch holds, so that others can tell it from a run
WATCH_FOLDER = "watch"
#: how long a run waits for what a watch has in work
GRACE_SECONDS = 600.0
#: how often a wait looks whether it shall end
TICK_SECONDS = 0.5


def watch(
    config: AnalystConfig,
    sleep: Callable[[float], None] = time.sleep,
    is_training: Callable[[], bool] = lambda: True,
) -> dict[str, Any]:
    """Analyse what appears until there is nothing more to come; returns counts of cards.

    ``is_training`` says whether the process that trains is still there. Raises InputError when bank
    or ledger cannot be used, or when there is no analyst.
    """
    desk = open_desk(_without_probe(config))
    if desk.maker is None:
        raise InputError(
            "there is no analyst to watch with",
            field="analyst.kind",
            value=config.analyst.kind,
            remedy="Choose rule_based or endpoint",
        )
    marker = desk.folder / STOP_MARKER
    marker.unlink(missing_ok=True)
    progress = Progress(desk.folder / "progress.json", unit="card", total=0)
    cases: list[Case] = []
    ended: str | None = None
    with Workers(desk.maker.make, desk.concurrency) as workers:
        try:
            while ended is None:
                ended = _reason_to_end(desk, marker, is_training)
                cases += _submit_new(desk, desk.maker, workers, cases)
                workers.poll(0)
                if (workers.done, len(cases)) != (progress.done, progress.total):
                    progress.total = len(cases)
                    progress.update(workers.done, ended or "watching")
                check_stop()
                if ended is None:
                    _wait(config.analyst.limits.poll_seconds, marker, sleep)
        except StopRequested:
            ended = "stopped"
        except AnalysisEnded as error:
            ended = str(error)
        else:
            while workers.poll(TICK_SECONDS):
                progress.update(workers.done, "draining")
    marker.unlink(missing_ok=True)
    marks = {case.source: desk.maker.fingerprint(case) for case in cases}
    counts = card_counts(cases, desk.maker.store.rows(marks))
    return {**counts, "candidates": 0, "ended": ended}


def end_watch(folder: Path, *, grace: float = GRACE_SECONDS) -> None:
    """Ask a watch of ``folder`` to end, if there is one, and wait until it has.

    Raises InputError when it is still at work after ``grace`` seconds.
    """
    deadline = time.monotonic() + grace
    while True:
        check_stop()
        try:
            with exclusive(folder / WATCH_FOLDER):
                return
        except InputError:
            if time.monotonic() > deadline:
                raise
        (folder / STOP_MARKER).touch()
        time.sleep(TICK_SECONDS)


def _without_probe(config: AnalystConfig) -> AnalystConfig:
    """Cards need no policy."""
    probe = config.analyst.probe.model_copy(update={"enabled": False})
    analyst = config.analyst.model_copy(update={"probe": probe})
    return config.model_copy(update={"analyst": analyst})


def _reason_to_end(desk: Desk, marker: Path, is_training: Callable[[], bool]) -> str | None:
    if marker.exists():
        return "asked to end"
    if (desk.config.training_dir / "checkpoint" / "checkpoint.json").exists():
        return "training has ended"
    return None if is_training() else "training is gone"


def _submit_new(desk: Desk, maker: CardMaker, workers: Workers, known: list[Case]) -> list[Case]:
    """Hand over the groups that were not seen before.

    While a round is written (or begun again after a crash) a file may be missing for a moment; what
    cannot be read now is read later, and ``run`` insists on it.
    """
    try:
        fresh = desk.cases([case.line["group_index"] for case in known])
    except InputError:
        return []
    workers.submit(case for case in fresh if not maker.is_done(case, retry_errors=False))
    return fresh


def _wait(seconds: float, marker: Path, sleep: Callable[[float], None]) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not marker.exists():
        check_stop()
        sleep(min(TICK_SECONDS, seconds))
