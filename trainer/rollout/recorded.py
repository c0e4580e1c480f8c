"""What an interrupted evaluation has already written, taken back batch by batch."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from trainer.rollout.traces import is_complete


class RecordedTraces:
    """The lines of a trace file as a queue of whole batches.

    ``take`` answers from the file as long as the next lines are exactly the batch asked for. At the
    first batch that is not wholly there everything from it on is cut off (a torn or damaged line
    with it), and nothing is answered any more: what follows is played and appended anew.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: list[tuple[str, bool, int]] = []  # episode id, complete, end offset
        self._taken = 0
        self._end = 0
        self._reading = path.exists()
        if self._reading:
            self._read()

    def _read(self) -> None:
        end = 0
        with self.path.open("rb") as handle:
            for line in handle:
                end += len(line)
                if not line.endswith(b"\n"):
                    return
                try:
                    trace = json.loads(line)
                    episode_id = trace["episode_id"]
                except (UnicodeDecodeError, json.JSONDecodeError, TypeError, KeyError):
                    return
                self._lines.append((episode_id, is_complete(trace), end))

    def take(self, episode_ids: Sequence[str]) -> list[bool] | None:
        """Which episodes of the next batch are complete; None when the batch must be played."""
        rows = self._lines[self._taken : self._taken + len(episode_ids)]
        if self._reading and [row[0] for row in rows] == list(episode_ids):
            self._taken += len(rows)
            self._end = rows[-1][2]
            return [row[1] for row in rows]
        self.finish()
        return None

    def finish(self) -> None:
        """Cut off whatever was not taken; nothing is answered from now on."""
        if self._reading:
            os.truncate(self.path, self._end)
        self._reading = False
        self._lines.clear()
