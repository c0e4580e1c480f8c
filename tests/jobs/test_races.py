"""Things that happen in one moment: what was read is no longer true when it is acted on."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone

from intraskill_web.experiments.models import Attempt, Experiment, Round
from intraskill_web.experiments.moves import move
from intraskill_web.experiments.services import start_round
from jobs import reconcile, silence
from jobs.models import Host
from jobs.transitions import RoundState, State
from tests.jobs.test_placement import another, host

Jobs = list[tuple[int, str]]


@pytest.fixture
def works(transactional_db: None, home: Path, handed_in: Jobs) -> list[Attempt]:
    """Two experiments whose first stage runs, both on one host."""
    host(settings.INTRASKILL_HOST_NAME, gpus=0)
    attempts = []
    for experiment in (another("one"), another("two")):
        start_round(experiment)
        attempt = Attempt.objects.get(stage__round__experiment=experiment)
        assert move(attempt, State.STARTING) and move(attempt, State.RUNNING)
        attempts.append(attempt)
    return attempts


@pytest.mark.parametrize("later", [0, 1])
def test_a_silent_host_loses_all_its_work_at_once(works: list[Attempt], later: int) -> None:
    now = timezone.now()
    Attempt.objects.update(heartbeat_at=now, host="gpu-9")
    Attempt.objects.filter(pk=works[later].pk).update(heartbeat_at=now + timedelta(seconds=3))
    assert len(silence.call_lost(silence._beats())) == 2
    assert set(Attempt.objects.values_list("state", flat=True)) == {State.LOST}


def test_who_returns_adopts_no_attempt_that_was_called_lost_meanwhile(
    works: list[Attempt], monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = works[0]
    Host.objects.update(gpus=[{"index": 0}], lease=attempt)

    def lives(looked_at: Attempt) -> bool:
        if looked_at == attempt:
            assert move(Attempt.objects.get(pk=attempt.pk), State.LOST)
        return True

    monkeypatch.setattr(reconcile, "_process_lives", lives)
    monkeypatch.setattr(reconcile, "_adoption_waits", lambda _attempt: False)
    reconcile._heal_watched()
    attempt.refresh_from_db()
    assert attempt.state == State.LOST and attempt.executions == 1
    assert Host.objects.get().lease != attempt


def test_a_pause_in_the_moment_in_which_a_stage_ends_leaves_nothing_running(
    works: list[Attempt],
) -> None:
    assert move(works[0], State.SUCCEEDED)
    # the pause was computed from a stage at work, the end of the stage without the pause
    experiment = works[0].stage.round.experiment
    Experiment.objects.filter(pk=experiment.pk).update(pause_after_stage=True)
    assert Round.objects.get(experiment=experiment).state == RoundState.RUNNING
    reconcile._advance_idle()
    assert Round.objects.get(experiment=experiment).state == RoundState.STOPPED
    experiment.refresh_from_db()
    assert experiment.state == RoundState.STOPPED
