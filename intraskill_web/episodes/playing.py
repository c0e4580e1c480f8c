"""Episodes that are being played: what the engine tells while no row of them exists yet.

Both engines write live files beside their traces (``trainer/rollout/live.py``). Here they are
found, and an episode of them is given the columns that its row will have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intraskill_web.episodes.heard import Heard
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.rows import episode_values
from intraskill_web.episodes.traces import answerable
from intraskill_web.experiments.models import Round, Stage
from jobs.mirror.folders import EVALUATIONS, FOLDERS
from jobs.transitions import ACTIVE
from trainer.errors import InputError
from trainer.rollout import live

TRAIN = "train"
MOST = 200  # episodes that the list shows


@dataclass(frozen=True, slots=True)
class Told(Heard):
    """An episode as far as its live file tells: ``folder`` is that of its traces in the round."""

    round: Round
    folder: str


def stage_of(folder: str) -> str:
    """The stage that plays the episodes of a round's folder; empty for no such folder."""
    if folder == TRAIN:
        return TRAIN
    return next((kind for kind, names in FOLDERS.items() if folder in names), "")


def being_played() -> Iterator[Told]:
    """The episodes that the engines tell of now, newest round first."""
    stages = Stage.objects.filter(state__in=ACTIVE).select_related("round__experiment")
    left = MOST
    for stage in stages.order_by("-round_id"):
        names = [TRAIN] if stage.kind == TRAIN else FOLDERS.get(stage.kind, ())
        for folder in names:
            for path in files(stage.round, folder):
                for trace in live.read_live(path):
                    told = _told(stage.round, folder, trace)
                    if told is not None and left:
                        left -= 1
                        yield told


def files(round_: Round, folder: str) -> list[Path]:
    """The live files of a round's folder, the latest last; no links and no pipes."""
    found = (round_.folder / folder / live.FOLDER).glob("*.jsonl")
    return sorted(path for path in found if path.is_file() and not path.is_symlink())


def told_of(round_: Round, folder: str, episode_id: str) -> Told | None:
    """An episode of a live file; None where none tells of it."""
    for path in reversed(files(round_, folder)):
        for trace in live.read_live(path, episode_id):
            return _told(round_, folder, trace)
    return None


def recorded(round_: Round, folder: str, episode_id: str) -> Episode | None:
    """The row of the episode once its trace is published; of several tries the last."""
    path = f"{round_.folder.name}/{folder}/"
    rows = Episode.objects.filter(round=round_, episode_id=episode_id, path__startswith=path)
    return rows.order_by("-pk").first()


def stamp(round_: Round, folder: str) -> tuple[object, ...]:
    """What changes whenever the live files do."""
    found: list[object] = []
    for path in files(round_, folder):
        try:
            facts = path.stat()
        except OSError:
            continue
        found += [path.name, facts.st_ino, facts.st_size]
    return tuple(found)


def _told(round_: Round, folder: str, trace: dict[str, Any]) -> Told | None:
    purpose, arm = EVALUATIONS.get(folder, ("", ""))
    try:
        trace = answerable(trace)
        values = episode_values(trace, purpose=purpose, arm=arm)
    except InputError:
        return None  # no episode of ours
    values["outcome"] = "" if trace.get("status") == "running" else values["outcome"]
    episode = Episode(experiment=round_.experiment, round=round_, **values)
    return Told(episode, trace, round_, folder)
