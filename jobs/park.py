"""Before a shutdown: end what runs on this host so that the next start can continue it."""

from __future__ import annotations

import time

from django.conf import settings

from intraskill_web.experiments.flow import stop_attempt
from intraskill_web.experiments.models import Attempt
from jobs.reconcile import SHUTDOWN
from jobs.transitions import State

WAIT_S = 12.0
POLL_S = 0.2


def park() -> int:
    """Ask everything that runs here to stop and wait until it has; returns how many still run.

    Waiting attempts stay in the queue. Call when no worker takes new work any more.
    """
    mine = Attempt.objects.filter(
        state__in=(State.STARTING, State.RUNNING, State.STOPPING),
        host=settings.INTRASKILL_HOST_NAME,
    )
    for attempt in mine.select_related("stage__round__experiment"):
        stop_attempt(attempt, SHUTDOWN)
    deadline = time.monotonic() + WAIT_S
    while (left := mine.count()) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return left
