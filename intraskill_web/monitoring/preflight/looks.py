"""How many look at once: each look is a process of hundreds of megabytes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

at_most = threading.BoundedSemaphore(2)  # processes of the trainer's checks, of one of ours
_changed = threading.Condition()
_looked_at: set[str] = set()


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
