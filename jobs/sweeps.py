"""The first rounds of a sweep: looked at and begun one after the other, beside this process.

The page that made the sweep returns at once. Whichever reconciler claims the sweep first begins its
experiments in their order; a look is taken once an arm, because seeds make no difference to it. A
red arm is held with its reason, like any round that begins by itself. A claim is renewed while
its process lives, so what a killed one left is soon gone on with.
"""

from __future__ import annotations

from django.db.models import Q, QuerySet
from django.utils import timezone

from intraskill_web.experiments.models import Experiment, Sweep
from intraskill_web.experiments.models.sweeps import CLAIM
from intraskill_web.monitoring.preflight import run as preflight
from jobs import next_round


def begin_left_over() -> None:
    """Take up every sweep of which something is to begin and that nobody works on."""
    waits = Experiment.objects.filter(
        sweep__isnull=False, rounds=None, hold_reason="", auto_continue=True,
        pause_after_stage=False,
    )  # fmt: skip
    _renew()
    for sweep in _unclaimed().filter(pk__in=waits.values("sweep")):
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


def _unclaimed() -> QuerySet[Sweep]:
    old = timezone.now() - CLAIM
    return Sweep.objects.filter(Q(claimed_at=None) | Q(claimed_at__lt=old))


def _claim(sweep: Sweep) -> bool:
    return bool(_unclaimed().filter(pk=sweep.pk).update(claimed_at=timezone.now()))
