"""A sweep on two hosts, one of which vanishes while it has an arm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from intraskill_web.experiments.models import Attempt, Experiment, Stage
from intraskill_web.experiments.models.sweeps import CLAIM
from intraskill_web.experiments.moves import move
from jobs import next_round, reconcile, silence, sweeps
from jobs.models import Host
from jobs.transitions import ACTIVE, State
from tests.jobs.sweeping import ALL, Trainer, begun, start
from tests.jobs.test_placement import host

Jobs = list[tuple[int, str]]
HERE, THERE = "host-2", "host-1"


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Callable[[], None]:
    """This reconciler is of ``HERE``; when called, ``THERE`` is silent for long enough."""
    now = [1000.0]
    settings.INTRASKILL_HOST_NAME = HERE
    monkeypatch.setattr(reconcile, "_silence", silence.Silence(lambda: now[0]))

    def act() -> None:
        Host.objects.filter(name=THERE).update(seen_at=timezone.now() - timedelta(minutes=5))
        reconcile.reconcile()
        for _ in range(int(silence.SILENT_S // 15)):
            now[0] += 15.0
            reconcile.reconcile()

    return act


def name_of(attempt: Attempt) -> str:
    return str(attempt.stage.round.experiment.name)


@pytest.mark.parametrize("gpus", [0, 1])
def test_the_arm_of_a_host_that_vanished_goes_on_before_the_arms_that_have_not_begun(
    trainer: Trainer, handed_in: Jobs, silent: Callable[[], None], gpus: int
) -> None:
    host(THERE, gpus=gpus)
    sweeps.begin(start())
    assert begun() == ALL
    first = Attempt.objects.get(pk=handed_in[0][0])
    assert (name_of(first), first.host, len(handed_in)) == ("s-published-1", THERE, 1)
    assert move(first, State.STARTING) and move(first, State.RUNNING)
    host(HERE, gpus=gpus)
    reconcile.reconcile()
    second = Attempt.objects.get(pk=handed_in[1][0])
    assert (name_of(second), second.host, len(handed_in)) == ("s-no-mask-1", HERE, 2)
    silent()
    first.refresh_from_db()
    assert first.state == State.LOST and first.error.startswith(f"host {THERE} vanished")
    assert len(handed_in) == 2, "the only host left works for the second arm"
    order = []
    for place in range(1, 4):
        attempt = Attempt.objects.get(pk=handed_in[place][0])
        order.append((name_of(attempt), attempt.number, attempt.host))
        for step in (State.STARTING, State.RUNNING, State.SUCCEEDED):
            assert move(attempt, step)
    assert order == [
        ("s-no-mask-1", 1, HERE),
        ("s-published-1", 2, HERE),
        ("s-published-2", 1, HERE),
    ]
    active = Attempt.objects.filter(state__in=ACTIVE)
    assert max(Counter(active.values_list("stage", flat=True)).values()) == 1, "nothing twice"
    assert Stage.objects.filter(kind="freeze", state=State.LOST).count() == 0


def test_a_sweep_that_the_vanished_host_was_beginning_is_gone_on_with(
    trainer: Trainer,
    handed_in: Jobs,
    silent: Callable[[], None],
    pass_by: Callable[[float], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host(THERE, gpus=0)
    sweep = start()

    begin = next_round.begin

    def until_powered_off(experiment: Experiment) -> bool:
        if begun():
            raise SystemExit
        return begin(experiment)

    with monkeypatch.context() as there, pytest.raises(SystemExit):
        there.setattr(next_round, "begin", until_powered_off)
        sweeps.begin(sweep)
    assert begun() == {"s-published-1"}
    host(HERE, gpus=0)
    sweeps.begin_left_over()
    assert begun() == {"s-published-1"}, "it was heard of a moment ago"
    pass_by(CLAIM.total_seconds())
    silent()
    sweeps.begin_left_over()
    assert begun() == ALL
