"""A sweep is made at once; its experiments are looked at and begun beside it, once an arm."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from intraskill_web.core.models import AuditEvent
from intraskill_web.experiments.models import Attempt, Experiment, Sweep
from intraskill_web.experiments.models.sweeps import CLAIM
from intraskill_web.experiments.sweeps import withdraw
from intraskill_web.monitoring.models import Preflight
from intraskill_web.monitoring.preflight import run
from jobs import next_round, reconcile, sweeps
from tests.jobs.sweeping import ALL, Trainer, begun, start
from trainer.errors import InputError


def test_making_a_sweep_looks_at_nothing_and_begins_nothing(trainer: Trainer) -> None:
    start()
    assert Experiment.objects.count() == 4
    assert trainer.looked_at == [] and begun() == set()


def test_the_reconciler_begins_all_in_their_order_and_looks_once_an_arm(trainer: Trainer) -> None:
    sweep = start()
    sweeps.begin_left_over()
    assert begun() == ALL
    assert trainer.looked_at == [0.2, 1.0], "seeds change nothing that is looked at"
    order = Attempt.objects.order_by("pk").values_list("stage__round__experiment__name", flat=True)
    assert list(order) == ["s-published-1", "s-no-mask-1", "s-published-2", "s-no-mask-2"]
    sweep.refresh_from_db()
    assert sweep.claimed_at is None
    sweeps.begin_left_over()
    assert len(trainer.looked_at) == 2 and Attempt.objects.count() == 4


def test_a_red_arm_is_held_with_its_reason_and_begins_once_it_is_cured(trainer: Trainer) -> None:
    trainer.red = {1.0}
    sweep = start()
    assert sweeps.begin(sweep) == 2
    assert begun() == {"s-published-1", "s-published-2"}
    held = Experiment.objects.filter(rounds=None)
    assert [e.hold_reason.count("curriculum: rho 1.0") for e in held] == [1, 1]
    trainer.red = set()
    past = timezone.now() - timedelta(minutes=5)
    Preflight.objects.update(checked_at=past)
    reconcile.reconcile()
    assert begun() == ALL


def test_a_red_sweep_is_looked_at_again_once_an_arm(
    trainer: Trainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer.red = {0.2, 1.0}
    sweeps.begin(start())
    assert trainer.looked_at == [0.2, 1.0]
    Preflight.objects.update(checked_at=timezone.now() - timedelta(minutes=5))
    kicked: list[str] = []

    def kick(name: str, action: Callable[[], Any]) -> None:
        kicked.append(name)
        action()

    monkeypatch.setattr(run, "kick", kick)
    next_round.begin_left_over()
    assert trainer.looked_at == [0.2, 1.0] * 2 and len(kicked) == 2
    next_round.begin_left_over()
    assert len(trainer.looked_at) == 4, "the others read what the first found"


def test_a_sweep_that_somebody_begins_is_left_to_them_until_they_fall_silent(
    trainer: Trainer, pass_by: Callable[[float], None]
) -> None:
    sweep = start()
    for _ in range(3):
        Sweep.objects.filter(pk=sweep.pk).update(claimed_at=timezone.now())
        sweeps.begin_left_over()
        pass_by(CLAIM.total_seconds() - 1)
    sweeps.begin_left_over()
    assert begun() == set()
    pass_by(1)
    sweeps.begin_left_over()
    assert begun() == ALL


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_was_set_neither_ends_nor_keeps_a_claim(
    trainer: Trainer, pass_by: Callable[[float], None], hours: int
) -> None:
    start()
    Sweep.objects.update(claimed_at=timezone.now() + timedelta(hours=hours))
    sweeps.begin_left_over()
    assert begun() == set()
    pass_by(CLAIM.total_seconds())
    sweeps.begin_left_over()
    assert begun() == ALL


@pytest.mark.parametrize("change", [{"auto_continue": False}, {"pause_after_stage": True}])
def test_an_experiment_that_somebody_holds_does_not_begin(
    trainer: Trainer, change: dict[str, bool]
) -> None:
    start()
    Experiment.objects.filter(name="s-no-mask-2").update(**change)
    sweeps.begin_left_over()
    assert begun() == ALL - {"s-no-mask-2"}


def test_an_experiment_of_no_sweep_waits_for_its_maker(
    trainer: Trainer, experiment: Experiment
) -> None:
    sweeps.begin_left_over()
    reconcile.reconcile()
    assert begun() == set() and trainer.looked_at == []


def test_what_has_not_begun_can_be_withdrawn_with_its_folders(trainer: Trainer) -> None:
    trainer.red = {1.0}
    sweep = start()
    sweeps.begin(sweep)
    held = [e.folder for e in Experiment.objects.filter(rounds=None)]
    assert withdraw(sweep) == 2
    assert {e.name for e in Experiment.objects.all()} == {"s-published-1", "s-published-2"}
    assert not any(folder.exists() for folder in held) and Sweep.objects.exists()
    assert AuditEvent.objects.get(action="sweep.withdraw").detail["experiments"] == 2
    with pytest.raises(InputError, match="have begun"):
        withdraw(sweep)


def test_withdrawing_everything_frees_the_name(trainer: Trainer) -> None:
    withdraw(start())
    assert not Sweep.objects.exists() and not Experiment.objects.exists()
    start()
