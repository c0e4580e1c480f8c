"""Sweeps when something goes wrong or happens in the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.db import connection, transaction
from django.utils import timezone

from intraskill_web.experiments import flow, services
from intraskill_web.experiments import sweeps as made
from intraskill_web.experiments.models import Attempt, Experiment, Sweep
from intraskill_web.experiments.models.sweeps import CLAIM
from intraskill_web.experiments.sweeps import withdraw
from intraskill_web.monitoring.preflight import run
from intraskill_web.monitoring.preflight.items import Item
from jobs import next_round, reconcile, sweeps
from tests.jobs.sweeping import ALL, Trainer, begun, start
from trainer.errors import InputError


def beside(action: Callable[[], Any]) -> threading.Thread:
    """Run it in a thread that has a connection of its own."""

    def work() -> None:
        try:
            action()
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_the_reason_of_a_hold_names_no_file_of_another_experiment(
    trainer: Trainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def red(file: Path) -> list[Item]:
        bank = yaml.safe_load(file.read_text())["start"]["skillbank"]
        return [Item("skillbank", "failed", f"{bank}: no such file", f"Restore {bank}")]

    monkeypatch.setattr(run, "_trainer", red)
    sweeps.begin(start())
    for experiment in Experiment.objects.all():
        assert "skillbank: start/skillbank.json: no such file" in experiment.hold_reason
        assert "/runs/" not in experiment.hold_reason


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite lets one write at a time")
def test_of_two_sweeps_made_at_once_one_is_made_and_the_other_refused(
    trainer: Trainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    both_saw_it_free = threading.Barrier(2)
    original = made.arm_configs
    refused: list[str] = []

    def configs(*arguments: Any, **options: Any) -> Any:
        found = original(*arguments, **options)
        both_saw_it_free.wait(10)
        return found

    def make() -> None:
        try:
            start()
        except InputError as refusal:
            refused.append(refusal.reason)

    monkeypatch.setattr(made, "arm_configs", configs)
    for thread in [beside(make), beside(make)]:
        thread.join(20)
    assert refused == ["a sweep of this name exists"] and Sweep.objects.count() == 1
    assert all(experiment.folder.exists() for experiment in Experiment.objects.all())
    assert Experiment.objects.count() == 4


@pytest.mark.parametrize("lives", [True, False])
def test_a_claim_is_renewed_as_long_as_its_process_looks(
    trainer: Trainer,
    pass_by: Callable[[float], None],
    monkeypatch: pytest.MonkeyPatch,
    lives: bool,
) -> None:
    sweep = start()
    Sweep.objects.filter(pk=sweep.pk).update(claimed_at=timezone.now())
    monkeypatch.setattr(run, "under_way", lambda name: lives and name == sweeps._work_on(sweep))
    sweeps.begin_left_over()
    pass_by(CLAIM.total_seconds())
    sweeps.begin_left_over()
    sweep.refresh_from_db()
    assert sweep.is_claimed is lives
    assert begun() == (set() if lives else ALL), "somebody else goes on with what was left"


def test_claims_are_renewed_in_one_go_however_many_there_are(
    trainer: Trainer, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    made = [Sweep.objects.create(name=f"s-{n}", claimed_at=timezone.now()) for n in range(3)]
    monkeypatch.setattr(run, "under_way", lambda name: name != sweeps._work_on(made[2]))
    with django_assert_num_queries(2):
        sweeps._renew()
    renewed = [Sweep.objects.get(pk=sweep.pk).claimed_at != sweep.claimed_at for sweep in made]
    assert renewed == [True, True, False]


def test_a_sweep_withdrawn_while_somebody_looks_begins_no_more(
    trainer: Trainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = start()
    look: Callable[..., Any] = run.look

    def withdrawn_meanwhile(*arguments: Any) -> Any:
        report = look(*arguments)
        if Sweep.objects.exists():
            withdraw(sweep)
        return report

    monkeypatch.setattr(run, "look", withdrawn_meanwhile)
    assert sweeps.begin(sweep) == 0
    assert not Experiment.objects.exists()


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite lets one write at a time")
def test_what_begins_while_a_withdrawal_waits_for_it_stays(trainer: Trainer) -> None:
    sweep = start()
    first = Experiment.objects.get(name="s-published-1")
    withdrawn: list[int] = []
    with transaction.atomic():
        assert flow.advance(first, into_next_round=True)
        thread = beside(lambda: withdrawn.append(withdraw(sweep)))
        thread.join(0.3)
        assert thread.is_alive(), "it waits for the row"
    thread.join(10)
    assert withdrawn == [3] and begun() == {"s-published-1"}
    assert first.folder.exists() and Attempt.objects.count() == 1


@pytest.mark.parametrize("act", [next_round.begin, services.start_round])
def test_what_was_withdrawn_in_the_last_moment_does_not_begin(
    trainer: Trainer, monkeypatch: pytest.MonkeyPatch, act: Callable[[Experiment], Any]
) -> None:
    sweep = start()
    first = Experiment.objects.get(name="s-published-1")
    original = flow.new_round

    def withdrawn_meanwhile(experiment: Experiment, number: int) -> Any:
        withdraw(sweep)
        return original(experiment, number)

    monkeypatch.setattr(flow, "new_round", withdrawn_meanwhile)
    monkeypatch.setattr(services, "new_round", withdrawn_meanwhile)
    if act is next_round.begin:
        assert act(first) is False
    else:
        with pytest.raises(InputError, match="withdrawn a moment ago"):
            act(first)


def test_an_arm_whose_look_fails_is_held_with_the_fault_and_the_others_begin(
    trainer: Trainer,
) -> None:
    sweep = start()
    first = Experiment.objects.get(name="s-published-1")
    (first.folder / "preflight").write_text("no folder")
    assert sweeps.begin(sweep) == 3 and begun() == ALL - {"s-published-1"}
    first.refresh_from_db()
    assert "preflight/round-000.yaml: cannot be written: File exists" in first.hold_reason
    (first.folder / "preflight").unlink()
    reconcile.reconcile()
    assert begun() == ALL


def test_a_fault_that_nobody_thought_of_holds_that_arm_too(
    trainer: Trainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = start()
    look: Callable[..., Any] = run.look

    def fails(experiment: Experiment, *arguments: Any) -> Any:
        if experiment.arm == "published":
            raise RuntimeError("out of threads")
        return look(experiment, *arguments)

    monkeypatch.setattr(run, "look", fails)
    assert sweeps.begin(sweep) == 2 and begun() == {"s-no-mask-1", "s-no-mask-2"}
    for held in Experiment.objects.filter(arm="published"):
        assert held.hold_reason == "the round could not begin: RuntimeError: out of threads"


def test_a_pass_survives_that_an_experiment_is_withdrawn_during_it(
    trainer: Trainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer.red = {0.2, 1.0}
    sweep = start()
    sweeps.begin(sweep)
    original = next_round.is_due

    def withdrawn_meanwhile(experiment: Experiment) -> bool:
        if Sweep.objects.exists():
            withdraw(sweep)
        return original(experiment)

    monkeypatch.setattr(next_round, "is_due", withdrawn_meanwhile)
    next_round.begin_left_over()
    assert not Experiment.objects.exists()
