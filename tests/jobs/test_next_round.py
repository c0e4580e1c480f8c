"""Rounds that begin by themselves look first; a red item holds them, with a signal and a reason."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from intraskill_web.core.models import AuditEvent
from intraskill_web.experiments import planning, services
from intraskill_web.experiments.models import Experiment
from intraskill_web.monitoring.models import Preflight, SignalEvent
from intraskill_web.monitoring.preflight import inputs, machine, run
from intraskill_web.monitoring.preflight.items import Item
from intraskill_web.monitoring.signals.evaluate import evaluate_all
from jobs import next_round, reconcile
from jobs.demo import start_or_continue
from jobs.runner import run_attempt
from trainer.errors import InputError

Jobs = list[tuple[int, str]]
RED = Item("checkpoint", "failed", "of another world", "Use the checkpoint of this world")
GREEN = Item("checkpoint", "passed", "25 tensors")


class Looks:
    """What the trainer would find; the real one is looked at in tests of the preflight."""

    item = GREEN
    count = 0

    def __call__(
        self, experiment: Experiment, number: int, config: dict[str, Any] | None = None
    ) -> Preflight:
        assert not connection.in_atomic_block, "a look takes seconds"
        self.count += 1
        key = inputs.key_of(experiment, number, config)
        return run._keep(inputs.target_of(experiment, number), key, [self.item], 0.1)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Looks:
    looks = Looks()
    settings.INTRASKILL_PREFLIGHT = True
    monkeypatch.setattr(run, "look", looks)
    monkeypatch.setattr(run, "kick", lambda _name, action: action())
    monkeypatch.setattr(machine, "MIN_FREE_BYTES", 1)
    return looks


@pytest.fixture
def finished(
    experiment: Experiment, handed_in: Jobs, scripted: Callable[..., None], looks: Looks
) -> Callable[[], Experiment]:
    """Ends round 0 the way a worker does; call it once the looks are as the test wants them."""

    def finish() -> Experiment:
        scripted(commands=lambda _plan: (), yields=lambda _plan: (), publish=lambda _s, _p: {})
        services.start_round(experiment)
        while len(handed_in) < 6:
            run_attempt(*handed_in[-1])
        run_attempt(*handed_in[-1])
        experiment.refresh_from_db()
        return experiment

    return finish


@pytest.fixture
def held(
    finished: Callable[[], Experiment], looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> Experiment:
    original = next_round.begin

    def begin(experiment: Experiment) -> bool:
        looks.item = RED if next_round.is_due(experiment) else GREEN
        return original(experiment)

    with monkeypatch.context() as patch:
        patch.setattr(next_round, "begin", begin)
        return finished()


def rounds(experiment: Experiment) -> int:
    return experiment.rounds.count()


def test_a_green_round_begins_when_the_one_before_it_ends(
    finished: Callable[[], Experiment], looks: Looks
) -> None:
    experiment = finished()
    assert (rounds(experiment), experiment.state, looks.count) == (2, "running", 2)


def test_a_red_round_is_held_with_its_reason_and_one_signal(
    held: Experiment, viewer_client: Client
) -> None:
    assert (rounds(held), held.state) == (1, "stopped")
    assert "the preflight is red: checkpoint: of another world" in held.hold_reason
    assert AuditEvent.objects.filter(action="round.hold").count() == 1
    for _ in range(2):
        reconcile.reconcile()
        evaluate_all()
    assert AuditEvent.objects.filter(action="round.hold").count() == 1
    assert SignalEvent.objects.get(kind="held").facts["number"] == 1
    for path in (f"/experiments/{held.name}/", f"/experiments/{held.name}/rounds/0/"):
        page = viewer_client.get(path).content.decode()
        assert "of another world" in page and f"/experiments/{held.name}/preflight/" in page


def test_a_held_round_begins_by_itself_once_nothing_is_red(held: Experiment, looks: Looks) -> None:
    evaluate_all()
    reconcile.reconcile()
    assert rounds(held) == 1
    looks.item = GREEN
    run.look(held, 1)  # somebody mended it and checked again
    reconcile.reconcile()
    held.refresh_from_db()
    assert (rounds(held), held.state, held.hold_reason) == (2, "running", "")
    evaluate_all()
    assert SignalEvent.objects.get(kind="held").closed_at


OTHER = Item("analyst", "failed", "no key", "Export it")


def test_the_reason_follows_what_is_red_now(
    held: Experiment, looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first item is cured and another remains; then a third turns red before it."""
    evaluate_all()
    looks.item = OTHER
    run.look(held, 1)
    reconcile.reconcile()
    held.refresh_from_db()
    assert "analyst: no key" in held.hold_reason and "of another world" not in held.hold_reason
    monkeypatch.setattr(machine, "MIN_FREE_BYTES", 1 << 60)
    reconcile.reconcile()
    held.refresh_from_db()
    assert "disk: " in held.hold_reason and "(and 1 more)" in held.hold_reason
    evaluate_all()
    assert SignalEvent.objects.get(kind="held").facts["reason"] == held.hold_reason
    assert AuditEvent.objects.filter(action="round.hold").count() == 1, "one onset"
    assert (rounds(held), held.state) == (1, "stopped")


def test_a_cure_that_leaves_no_trace_in_a_file_is_found(held: Experiment, looks: Looks) -> None:
    looks.item, before = GREEN, looks.count
    reconcile.reconcile()
    assert looks.count == before, "it was looked at a moment ago"
    Preflight.objects.update(checked_at=timezone.now() - timedelta(minutes=5))
    reconcile.reconcile()
    assert (looks.count, rounds(held)) == (before + 1, 2)


def test_who_starts_a_red_round_is_refused_by_a_look_of_now(held: Experiment, looks: Looks) -> None:
    Preflight.objects.update(checked_at=timezone.now() - timedelta(seconds=10))
    looks.item = OTHER
    with pytest.raises(InputError, match="analyst: no key"):
        services.start_round(held)
    looks.item = GREEN
    Preflight.objects.update(checked_at=timezone.now() - timedelta(seconds=10))
    assert services.start_round(held).number == 1


def test_what_needs_a_person_still_refuses_a_red_round(held: Experiment) -> None:
    for act in (
        lambda: services.resume_round(held),
        lambda: services.start_round(held),
        lambda: planning.continue_until(held, 5),
    ):
        with pytest.raises(InputError, match="the preflight is red: checkpoint"):
            act()
    held.refresh_from_db()
    assert (rounds(held), held.rounds_planned) == (1, 2)


def test_a_person_may_start_it_once_it_is_green(held: Experiment, looks: Looks) -> None:
    looks.item = GREEN
    run.look(held, 1)
    services.start_round(held)
    held.refresh_from_db()
    assert (rounds(held), held.hold_reason) == (2, "")


def test_holding_after_the_round_takes_the_place_of_the_reason(held: Experiment) -> None:
    planning.hold_after_round(held)
    held.refresh_from_db()
    assert (held.hold_reason, held.state) == ("", "stopped")
    assert not next_round.begin(held)


def test_the_reconciler_begins_what_a_killed_worker_left(
    finished: Callable[[], Experiment], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(next_round, "begin", lambda _experiment: False)
        experiment = finished()
    assert (rounds(experiment), experiment.state) == (1, "running")
    reconcile.reconcile()
    assert rounds(experiment) == 1, "its worker may still be looking"
    monkeypatch.setattr(next_round, "LEFT_TO_THE_WORKER", next_round.LEFT_TO_THE_WORKER * 0)
    reconcile.reconcile()
    assert rounds(experiment) == 2


def test_a_held_demonstration_does_not_keep_the_stack_from_starting(
    held: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.demo.DEMO", held.name)
    assert "waits: " in start_or_continue()


@pytest.mark.parametrize("meanwhile", ["begun", "left to people"])
def test_what_changed_while_somebody_looked_is_not_held(
    finished: Callable[[], Experiment], looks: Looks, meanwhile: str
) -> None:
    experiment = finished()  # looks are green, so the next round has begun
    if meanwhile == "left to people":
        experiment.rounds.filter(number=1).delete()
        Experiment.objects.update(auto_continue=False)
    next_round._hold(experiment, "checkpoint: of another world")
    experiment.refresh_from_db()
    assert experiment.hold_reason == ""
    assert not AuditEvent.objects.filter(action="round.hold").exists()
