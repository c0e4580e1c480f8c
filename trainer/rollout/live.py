"""What is being played right now, for those who look on: a side file that grows turn by turn.

Beside the traces, ``live/<name>.jsonl`` holds the episodes of the present batch (evaluation) or
step (training): for each one line where it begins, one a turn and one where it ends, each
``[episode id, kind, value]``, so that one episode is found without parsing the others. Texts stand
once, as in the slim layout; the private goal and the exact tokens are left out. At most ``AT_ONCE``
episodes are told of at a time, the first to begin: to tell of all 256 of a batch would cost the
embedded engine 3 % of its pace, these cost it under 1 %. The file goes as soon as the traces of its
episodes are published.

Nothing is computed from it. It is not flushed to disk, belongs to no hash, and whoever resumes
deletes it; a disk that refuses it costs the onlookers their view, never the run.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import orjson

from trainer.rollout.episode import Episode

FOLDER = "live"
BATCH = "batch.jsonl"
AT_ONCE = 32
LINE = orjson.OPT_APPEND_NEWLINE
LOG = logging.getLogger(__name__)


def step_file(folder: Path, step: int) -> Path:
    """The live file of a training step; ``folder`` is the round's training folder."""
    return folder / FOLDER / f"step-{step:06d}.jsonl"


def forget(folder: Path, *, up_to_step: int | None = None) -> None:
    """Remove the live files of ``folder``: all, or those of steps that are published now."""
    for path in (folder / FOLDER).glob("*.jsonl"):
        if up_to_step is None or path.name <= step_file(folder, up_to_step).name:
            path.unlink(missing_ok=True)


class LiveFile:
    """Writes one live file. Made anew: whatever stood there belongs to a run that is gone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._written: dict[str, int] = {}  # turns by episode; -1: nothing more of it
        self._running = 0
        self._handle: IO[bytes] | None = None
        self._refused = False
        self._lock = threading.Lock()  # episodes of a served policy are played by threads

    def note(self, episodes: Iterable[Episode]) -> None:
        """Write what is new of the episodes: beginnings, turns, ends. One write."""
        with self._lock:
            self._note(episodes)

    def _note(self, episodes: Iterable[Episode]) -> None:
        if self._refused:
            return
        try:
            lines = b"".join(
                orjson.dumps(line, option=LINE) for e in episodes for line in self._news(e)
            )
            if lines:
                self._open().write(lines)
        except (OSError, TypeError) as error:  # TypeError: a text that no file can hold
            LOG.warning("%s: nobody can look on any more: %s", self.path, error)
            self._refused = True
            self.close()

    def _open(self) -> IO[bytes]:
        if self._handle is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = self.path.open("wb", buffering=0)
        return self._handle

    def _news(self, episode: Episode) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        key = episode.request.episode_id
        known = self._written.get(key)
        if known == -1:
            return
        if known is None:
            if self._running >= AT_ONCE:
                self._written[key] = -1
                return
            known = 0
            self._running += 1
            yield key, "begin", _slim(episode.head())
        for place in range(known, len(episode.steps)):
            step = dict(episode.steps[place])
            step.pop("observation", None)  # the text that answered the turn before
            yield key, "turn", {"step": step, "after": episode.text_after(place)}
        self._written[key] = len(episode.steps)
        ending = episode.ending()
        if ending is not None:
            self._written[key] = -1
            self._running -= 1
            yield key, "end", ending

    def close(self) -> None:
        """Remove the file: its episodes are published, or will be played again."""
        if self._handle is not None:
            self._handle.close()
            self._handle = None
        self._written.clear()
        self._running = 0
        with suppress(OSError):
            self.path.unlink()


def _slim(head: Mapping[str, Any]) -> dict[str, Any]:
    """The head of a trace without what all episodes of a run share."""
    told = head["provenance"]
    return {
        **head,
        "provenance": {key: told[key] for key in ("model", "skills") if key in told},
    }


def read_live(path: Path, episode_id: str | None = None) -> Iterator[dict[str, Any]]:
    """The episodes of a live file as traces that have no end yet, in the order they began.

    ``episode_id`` picks one. ``status`` is ``running`` up to the end, and ``final`` then holds only
    the text of the present page. Nothing when the file is gone or refused; a torn last line waits.
    """
    wanted = None if episode_id is None else orjson.dumps([episode_id])[:-1] + b","
    found: dict[str, dict[str, Any]] = {}
    try:
        with path.open("rb") as handle:
            for line in handle:
                if wanted is None or line.startswith(wanted):
                    _take(found, line)
    except OSError:  # gone, or not to be read: what else there is to see is still seen
        return
    yield from found.values()


def _take(found: dict[str, dict[str, Any]], line: bytes) -> None:
    try:
        key, kind, value = orjson.loads(line)
        if kind == "begin":
            prompt = value["conversation"]
            value["final"] = {"observation": prompt[-1]["content"] if prompt else ""}
            found[key] = value
        elif kind == "turn":
            trace = found[key]
            step = {"observation": trace["final"]["observation"], **value["step"]}
            trace["steps"].append(step)
            trace["final"] = {"observation": value["after"]}
        else:
            found[key] |= value
    except (ValueError, TypeError, LookupError, AttributeError):
        return  # torn: the writer is not done with it; or its beginning was never written
