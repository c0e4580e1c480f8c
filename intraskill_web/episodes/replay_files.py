"""The episodes of a replay as its folder tells: recorded ones, and those that are being played.

They have no rows: nothing of a replay is ever searched, counted or trained on. What came of them
stands in the row of a replay that succeeded, and outlives its files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intraskill_web.core.labels import TERMINATIONS, word
from intraskill_web.episodes.endings import Ending, ending
from intraskill_web.episodes.heard import Heard
from intraskill_web.episodes.models import Episode, Replay
from intraskill_web.episodes.prepare import parse
from intraskill_web.episodes.rows import episode_values
from intraskill_web.episodes.traces import answerable
from trainer.errors import InputError
from trainer.rollout import live
from trainer.rollout.types import EpisodeJob

PURPOSE = "replay"
SILENT_S = 300  # after so long without anything new somebody may hand it in again


@dataclass(frozen=True, slots=True)
class Played(Heard):
    """An episode of a replay."""

    @property
    def ended_by(self) -> str:
        """What ended it, in a word."""
        return word(TERMINATIONS, self.episode.termination)

    @property
    def gone(self) -> bool:
        """Whether its files are, so that only what came of it is known."""
        return not self.trace

    @property
    def ending(self) -> Ending | None:
        """How it ended; None while it is played."""
        return None if self.running else ending(self.episode)


def played(row: Replay) -> list[Played]:
    """All of them by sample, of several tries the last."""
    lines = [*_recorded(row), *live.read_live(live_file(row))]
    made = [one for one in (_played(row, line) for line in lines) if one is not None]
    found = _kept(row) | {one.episode.sample_id: one for one in made}
    return [found[sample] for sample in sorted(found)]


def being_played() -> Iterator[tuple[Replay, Played]]:
    """What the live files of running replays tell of now, newest replay first."""
    rows = Replay.objects.select_related("episode__experiment", "episode__round")
    for row in rows.filter(state="running").order_by("-pk"):
        for trace in live.read_live(live_file(row)):
            one = _played(row, trace)
            if one is not None:
                yield row, one


def told(row: Replay, sample: int) -> Played | None:
    """An episode as the live file tells of it now; None where it does not."""
    name = EpisodeJob.of(0, row.episode.task_id, sample, row.episode.split).episode_id
    for trace in live.read_live(live_file(row), name):
        return _played(row, trace)
    return None


def recorded(row: Replay, sample: int) -> Played | None:
    """An episode whose trace is published, of several tries the last, or what is kept of it."""
    lines = [line for line in _recorded(row) if _sample(line) == sample]
    made = [one for one in (_played(row, line) for line in lines) if one is not None]
    return made[-1] if made else _kept(row).get(sample)


def live_file(row: Replay) -> Path:
    """What the engine tells of the present batch."""
    return row.folder / "run" / live.FOLDER / live.BATCH


def stamp(row: Replay) -> tuple[object, ...]:
    """What changes whenever an episode of the replay does."""
    found = [(f.st_ino, f.st_size) for f in _facts(live_file(row), _traces(row))]
    return (row.pk, row.state, row.error, silent(row), *found)


def silent(row: Replay) -> bool:
    """Whether one that should be played has told nothing for long: its worker may be gone."""
    if not row.active:
        return False
    log = row.folder / "replay.log"
    told = [facts.st_mtime for facts in _facts(live_file(row), _traces(row), log)]
    return max([row.created_at.timestamp(), *told]) < time.time() - SILENT_S


def _facts(*paths: Path) -> list[os.stat_result]:
    found = []
    for path in paths:
        with suppress(OSError):
            found.append(path.stat())
    return found


def _traces(row: Replay) -> Path:
    return row.folder / "run" / "traces.jsonl"


def _recorded(row: Replay) -> Iterator[Any]:
    if not _traces(row).is_file():
        return
    with _traces(row).open("rb") as handle:
        for line in handle:
            try:
                yield parse(line)
            except InputError:  # torn, or damaged
                continue


def _sample(line: Any) -> object:
    job = line.get("job") if isinstance(line, dict) else None
    return job.get("sample_id") if isinstance(job, dict) else None


def _kept(row: Replay) -> dict[int, Played]:
    """What came of each, as the row says."""
    old, found = row.episode, {}
    for place, outcome in enumerate(row.outcomes):
        episode = Episode(
            experiment=old.experiment,
            round=old.round,
            task_id=old.task_id,
            split=old.split,
            instruction=old.instruction,
            sample_id=outcome.get("sample", place),
            purpose=PURPOSE,
            scored=outcome["reward"] is not None,
            termination=outcome.get("termination", ""),
            **{name: outcome[name] for name in ("reward", "success", "turns")},
        )
        found[episode.sample_id] = Played(episode, {})
    return found


def _played(row: Replay, line: Any) -> Played | None:
    try:
        trace = answerable(line)
        values = episode_values(trace, purpose=PURPOSE, arm="")
    except InputError:
        return None  # damage: the others are still shown
    round_, experiment = row.episode.round, row.episode.experiment
    return Played(Episode(experiment=experiment, round=round_, **values), trace)
