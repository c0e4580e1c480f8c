"""The first rounds of a sweep: looked at and begun one after the other, beside this process.

The page that made the sweep returns at once. Whichever reconciler claims the sweep first begins its
experiments in their order; a look is taken once an arm, because seeds make no difference to it. A
red arm is held with its reason, like any round that begins by itself. A claim is renewed while
its process lives, so what a killed one left is soon gone on with. Whether it is renewed is judged
by change, on this process's own clock: times may be of other machines or of a clock set since.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import datetime

from django.utils import timezone

from intraskill_web.experiments.models import Experiment, Sweep
from intraskill_web.experiments.models.sweeps import CLAIM
from intraskill_web.monitoring.preflight import run as preflight
from jobs import next_round


class Claims:
    """The claims that one process saw, and since when each is as it is."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[tuple[int, datetime | None], float] = {}

    def free(self, sweeps: Iterable[Sweep]) -> list[Sweep]:
        """Of all that wait those that nobody claims, or whose claim was not renewed for long."""
        now, found = self._clock(), list(sweeps)
        keys = [(sweep.pk, sweep.claimed_at) for sweep in found]
        self._since = {key: self._since.get(key, now) for key in keys}
        return [
            sweep
            for key, sweep in zip(keys, found, strict=True)
            if sweep.claimed_at is None or now - self._since[key] >= CLAIM.total_seconds()
        ]


_claims = Claims()


def begin_left_over() -> None:
    """Take up every sweep of which something is to begin and that nobody works on."""
    waits = Experiment.objects.filter(
        sweep__isnull=False, rounds=None, hold_reason="", auto_continue=True,
        pause_after_stage=False,
    )  # fmt: skip
    _renew()
    for sweep in _claims.free(Sweep.objects.filter(pk__in=waits.values("sweep"))):
        if _claim(sweep):
            preflight.kick(_work_on(sweep), lambda sweep=sweep: begin(sweep))


def begin(sweep: Sweep) -> int:
    """Look at and begin every experiment of the sweep that has not begun; how many began."""
    begun = 0
    waiting = sweep.experiments.filter(rounds=None, hold_reason="").order_by("pk")
    for experiment in waiting:
        Sweep.objects.filter(pk=sweep.pk).update(claimed_at=timezone.now())
        begun += next_round.begin(experiment)
    Sweep.objects.filter(pk=sweep.pk).update(claimed_at=None)
    return begun


def _renew() -> None:
    """Keep the claims of this process: a look may take minutes, and its death is soon seen."""
    claimed = Sweep.objects.exclude(claimed_at=None)
    ours = [sweep.pk for sweep in claimed if preflight.under_way(_work_on(sweep))]
    if ours:
        claimed.filter(pk__in=ours).update(claimed_at=timezone.now())


def _work_on(sweep: Sweep) -> str:
    return f"sweep {sweep.pk}"


def _claim(sweep: Sweep) -> bool:
    """Whether nobody was faster."""
    same = Sweep.objects.filter(pk=sweep.pk, claimed_at=sweep.claimed_at)
    return bool(same.update(claimed_at=timezone.now()))
