"""How many look at once: each look is a process of hundreds of megabytes."""

from __future__ import annotations

import fcntl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from django.conf import settings

AT_MOST = 2  # processes of the trainer's checks in one home, whoever looks: web, worker, reconciler
POLL_S = 0.1
_changed = threading.Condition()
_looked_at: set[str] = set()


@contextmanager
def one_of_few() -> Iterator[None]:
    """Wait until fewer than ``AT_MOST`` look in this home, and count as one of them.

    The locks are the kernel's: who is killed holds none.
    """
    while (place := _free_place()) is None:
        time.sleep(POLL_S)
    with place:
        yield


def _free_place() -> IO[str] | None:
    """A locked file of the home; its lock ends when it is closed."""
    for number in range(AT_MOST):
        file = (Path(settings.INTRASKILL_HOME) / f"look-{number}.lock").open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
        else:
            return file
    return None


@contextmanager
def alone(key: str) -> Iterator[None]:
    """Wait until nobody else in this process looks at the inputs of this key."""
    with _changed:
        _changed.wait_for(lambda: key not in _looked_at)
        _looked_at.add(key)
    try:
        yield
    finally:
        with _changed:
            _looked_at.discard(key)
            _changed.notify_all()
