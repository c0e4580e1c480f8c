"""One process per folder: a lock that the kernel drops when its holder dies.

Two runs that append to the same files would ruin both; a run that was killed must not stay locked.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trainer.errors import InputError


class Held(InputError):
    """Another process works in the folder."""


@contextmanager
def exclusive(folder: Path) -> Iterator[int]:
    """Hold the folder for this process, and for children that are given the descriptor.

    Raises Held when another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Held(
                "another process is working in this folder",
                file=folder,
                remedy="Wait until it ends, or stop it",
            ) from error
        yield handle.fileno()


def is_held(folder: Path) -> bool:
    """Whether somebody holds the folder now."""
    try:
        with (folder / ".lock").open() as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
