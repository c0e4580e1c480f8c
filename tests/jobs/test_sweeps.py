"""A sweep is made at once; its experiments are looked at and begun beside it, once an arm."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.db import connection, transaction
from django.utils import timezone

from intraskill_web.core.models import AuditEvent
from intraskill_web.experiments import flow, services
from intraskill_web.experiments.models import Attempt, Experiment, Sweep
from intraskill_web.experiments.models.sweeps import CLAIM
from intraskill_web.experiments.sweeps import base_config, start_sweep, withdraw
from intraskill_web.monitoring.models import Preflight
from intraskill_web.monitoring.preflight import machine, run
from intraskill_web.monitoring.preflight.items import Item
from jobs import next_round, queue, reconcile, sweeps
from trainer.errors import InputError

ARMS = ["published", "no-mask"]


class Trainer:
    """Stands for ``python -m trainer check``: red for the arms named in ``red``."""

    def __init__(self) -> None:
        self.looked_at: list[float] = []
        self.red: set[float] = set()

    def __call__(self, file: Path) -> list[Item]:
        rho = yaml.safe_load(file.read_text())["curriculum"]["rho_min"]
        self.looked_at.append(rho)
        return [Item("curriculum", "failed" if rho in self.red else "passed", f"rho {rho}")]


@pytest.fixture
def trainer(
    transactional_db: None, home: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Trainer:
    settings.INTRASKILL_PREFLIGHT = True
    trainer = Trainer()
    monkeypatch.setattr(run, "_trainer", trainer)
    monkeypatch.setattr(run, "kick", lambda _name, action: action())
    monkeypatch.setattr(machine, "MIN_FREE_BYTES", 1)
    monkeypatch.setattr(queue, "enqueue", lambda *_arguments: True)
    return trainer


def start() -> Sweep:
    return start_sweep("s", base_config("mini/quick"), arms=ARMS, seeds=[1, 2])


def begun() -> set[str]:
    return set(Experiment.objects.exclude(rounds=None).values_list("name", flat=True))


ALL = {"s-published-1", "s-no-mask-1", "s-published-2", "s-no-mask-2"}


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


def test_a_sweep_that_somebody_begins_is_left_to_them_until_they_fall_silent(
    trainer: Trainer,
) -> None:
    sweep = start()
    Sweep.objects.filter(pk=sweep.pk).update(claimed_at=timezone.now())
    sweeps.begin_left_over()
    assert begun() == set()
    Sweep.objects.filter(pk=sweep.pk).update(claimed_at=timezone.now() - 2 * CLAIM)
    sweeps.begin_left_over()
    assert begun() == ALL


@pytest.mark.parametrize("lives", [True, False])
def test_a_claim_is_renewed_as_long_as_its_process_looks(
    trainer: Trainer, monkeypatch: pytest.MonkeyPatch, lives: bool
) -> None:
    sweep = start()
    long_ago = timezone.now() - 2 * CLAIM
    Sweep.objects.filter(pk=sweep.pk).update(claimed_at=long_ago)
    monkeypatch.setattr(run, "under_way", lambda name: lives and name == sweeps._work_on(sweep))
    sweeps.begin_left_over()
    sweep.refresh_from_db()
    assert sweep.is_claimed is lives
    assert begun() == (set() if lives else ALL), "somebody else goes on with what was left"


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
    assert "preflight" in first.hold_reason and "FileExistsError" in first.hold_reason
    (first.folder / "preflight").unlink()
    reconcile.reconcile()
    assert begun() == ALL


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
