"""How long a round and its experiment still take."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F
from django.test import Client
from django.utils import timezone

from intraskill_web.experiments.models import Attempt, Round, Stage
from intraskill_web.experiments.states import STAGE_ORDER
from intraskill_web.experiments.time_left import (
    PACE_ATTEMPTS,
    Pace,
    left_of_experiment,
    left_of_round,
    left_of_stage,
    pace_from,
    pace_of,
)
from tests.web.factories import Made
from tests.web.html import Page

TOOK = dict(zip(STAGE_ORDER, (10.0, 100.0, 5.0, 60.0, 40.0, 1.0), strict=True))


@pytest.fixture
def working(made: Made) -> list[Stage]:
    """Round 0 took ``TOOK``; round 1 trains, with 30 seconds to go."""
    for kind, seconds in TOOK.items():
        begun = timezone.now()
        Attempt.objects.filter(stage__round=made.rounds[0], stage__kind=kind).update(
            started_at=begun, ended_at=begun + timedelta(seconds=seconds)
        )
    Attempt.objects.filter(stage__round=made.rounds[1], stage__kind="freeze").update(
        ended_at=F("started_at") + timedelta(seconds=10)
    )
    Stage.objects.filter(round=made.rounds[1], kind="train").update(
        done=8, total=12, eta_seconds=30.0
    )
    made.rounds[1].refresh_from_db()
    return list(made.rounds[1].stages.order_by("position"))


def test_a_round_takes_the_rest_of_its_stage_and_what_later_stages_took_before(
    made: Made, working: list[Stage]
) -> None:
    pace = pace_of(made.experiment)
    assert pace.usual == TOOK
    left = left_of_round(made.rounds[1], working, pace)
    assert left is not None and left.seconds == 30.0 + 5.0 + 60.0 + 40.0 + 1.0
    assert not left.at_least


def test_a_pace_is_the_same_from_the_database_and_from_what_a_page_has_read(
    made: Made, working: list[Stage]
) -> None:
    train = made.rounds[1].stages.get(kind="train")
    for number in range(2, PACE_ATTEMPTS + 2):  # more than one reading, none of which tells
        Attempt.objects.create(stage=train, number=number, state="failed")
    read = Attempt.objects.select_related("stage").order_by("-pk")
    assert pace_of(made.experiment) == pace_from(list(read))
    assert pace_of(made.experiment).usual == TOOK


def test_a_pause_between_two_attempts_is_no_work(made: Made, working: list[Stage]) -> None:
    gate = made.rounds[0].stages.get(kind="gate")
    later = timezone.now() + timedelta(days=1)
    Attempt.objects.create(
        stage=gate, number=2, state="succeeded",
        started_at=later, ended_at=later + timedelta(seconds=3),
    )  # fmt: skip
    assert pace_of(made.experiment).usual == TOOK | {"gate": 43.0}


def test_an_experiment_takes_its_planned_rounds_too(made: Made, working: list[Stage]) -> None:
    round_ = made.rounds[1]
    round_.experiment.rounds_planned = 4
    left = left_of_experiment(round_, working, Pace(TOOK))
    assert left is not None and left.seconds == 136.0 + 2 * 216.0


def test_what_never_finished_is_told_from_its_episodes_and_is_a_lower_bound(
    made: Made, working: list[Stage]
) -> None:
    known = {kind: seconds for kind, seconds in TOOK.items() if kind != "gate"}
    left = left_of_round(made.rounds[1], working, Pace(known))
    assert left is not None and (left.seconds, left.at_least) == (96.0, True)
    left = left_of_round(made.rounds[1], working, Pace(known, per_episode=0.5))
    assert left is not None  # the published gate plays each of the 40 tasks once
    assert (left.seconds, left.at_least) == (96.0 + 40 * 0.5, True)
    whole = left_of_experiment(made.rounds[1], working, Pace(known, per_episode=0.5))
    assert whole is not None and whole.at_least
    assert whole.seconds == (96.0 + 20.0) + 2 * (176.0 + 20.0)


def test_a_first_round_takes_its_pace_from_the_episodes_of_the_baseline(made: Made) -> None:
    Round.objects.filter(pk=made.rounds[1].pk).delete()
    round_ = Round.objects.get(pk=made.rounds[0].pk)
    Stage.objects.filter(round=round_).exclude(kind="freeze").update(state="")
    Attempt.objects.filter(stage__round=round_).exclude(stage__kind="freeze").delete()
    begun = timezone.now()
    Stage.objects.filter(round=round_, kind="freeze").update(
        state="succeeded", done=80, total=80, unit="episode"
    )
    Attempt.objects.filter(stage__round=round_).update(
        started_at=begun, ended_at=begun + timedelta(seconds=40)
    )
    round_.state = "running"
    pace = pace_of(made.experiment)
    assert pace.per_episode == 0.5
    left = left_of_round(round_, list(round_.stages.order_by("position")), pace)
    assert left is not None and left.at_least
    # 12 steps of 8 groups of 4, 40 tasks bare and full, 40 masked
    assert left.seconds == 0.5 * (12 * 8 * 4 + 80 + 40)


def test_of_a_round_of_which_nothing_is_known_nothing_is_told(
    made: Made, working: list[Stage]
) -> None:
    working[1].eta_seconds = None
    assert left_of_round(made.rounds[1], working, Pace({})) is None


def test_a_stage_that_does_not_know_its_pace_yet_takes_what_it_took_before(
    made: Made, working: list[Stage]
) -> None:
    train = working[1]
    train.eta_seconds, train.started_at = None, timezone.now() - timedelta(hours=1)
    left = left_of_round(made.rounds[1], working, Pace(TOOK))
    assert left is not None and left.seconds == 106.0  # it is late: nothing of it is left


@pytest.mark.parametrize(("done", "total", "told"), [(19, 1000, False), (20, 1000, True)])
def test_a_pace_of_few_pieces_is_not_told(done: int, total: int, told: bool) -> None:
    stage = Stage(kind="validate", done=done, total=total, eta_seconds=9.0)
    assert (left_of_stage(stage) is not None) == told


def test_a_round_that_does_not_work_has_no_time_left(made: Made, working: list[Stage]) -> None:
    assert left_of_round(made.rounds[0], working, Pace(TOOK)) is None


@pytest.mark.usefixtures("working")
def test_both_pages_say_when_they_expect_to_end(made: Made, viewer_client: Client) -> None:
    Round.objects.filter(pk=made.rounds[1].pk).update(state="running")
    for path in ("/experiments/demo/", "/experiments/demo/rounds/1/"):
        assert "left, ends about" in Page(viewer_client.get(path).content.decode()).text, path
        found = viewer_client.get(path + "?format=json").json()
        assert found["eta_seconds"] >= 136.0 - 1.0, path
