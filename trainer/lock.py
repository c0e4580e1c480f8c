"""One process per folder: a lock that the kernel drops when its holder dies.

Two runs that append to the same files would ruin both; a run that was killed must not stay locked.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trainer.errors import InputError


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Hold the folder for this process. Raises InputError when another process holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(
                "another process is working in this folder",
                file=folder,
                remedy="Wait until it ends, or stop it",
            ) from error
        yield
