"""Beside the reconciler: look at the rounds and send what is due, in a thread of its own.

A slow mail server must not keep the reconciler from healing, so nothing is waited for; a look
that is still under way is not doubled.
"""

from __future__ import annotations

import logging
import threading

from django.db import DatabaseError, connection

from intraskill_web.monitoring.notify.outbox import deliver_due
from intraskill_web.monitoring.signals.evaluate import evaluate_all

logger = logging.getLogger(__name__)
_running: threading.Thread | None = None
_seen: dict[int, object] = {}  # what each round was like at the last look


def kick() -> None:
    """Begin a look at all watched rounds, unless one is under way."""
    global _running  # noqa: PLW0603
    if _running is not None and _running.is_alive():
        return
    _running = threading.Thread(target=_look, name="signals", daemon=True)
    _running.start()


def _look() -> None:
    try:
        evaluate_all(_seen)
        deliver_due()
    except DatabaseError:
        logger.exception("the database did not answer; signals are looked at again soon")
    except Exception:
        logger.exception("a look at the signals failed")
    finally:
        connection.close()
