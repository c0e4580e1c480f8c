"""What a round took is the work of its attempts; pauses and waiting are told beside it."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace as Attempt
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from intraskill_web.experiments.models import Attempt as AttemptRow
from intraskill_web.experiments.models import Experiment, Round, Stage
from intraskill_web.experiments.queries import round_figures
from intraskill_web.experiments.states import STAGE_ORDER
from intraskill_web.experiments.took import took
from jobs.transitions import State

BEGUN = timezone.now() - timedelta(hours=5)


def at(minutes: float) -> datetime:
    return BEGUN + timedelta(minutes=minutes)


def attempt(start: float | None, end: float | None) -> Any:
    return Attempt(
        started_at=None if start is None else at(start), ended_at=None if end is None else at(end)
    )


def test_what_never_began_took_nothing() -> None:
    assert took(None, None, []) is None


def test_an_hours_pause_between_two_attempts_is_no_work() -> None:
    made = took(at(0), at(130), [attempt(0, 10), attempt(70, 130)])
    assert made is not None
    assert (made.worked, made.idle, made.since) == (70 * 60, 60 * 60, None)


def test_seconds_between_stages_are_not_worth_a_word() -> None:
    made = took(at(0), at(20), [attempt(0, 10), attempt(10.5, 20)])
    assert made is not None and made.idle is None and made.worked == 19.5 * 60


def test_while_it_is_worked_on_a_clock_shows_the_work_only() -> None:
    made = took(at(0), None, [attempt(0, 10), attempt(70, None), attempt(None, None)])
    assert made is not None and made.since == at(60)
    assert made.worked == pytest.approx((timezone.now() - at(60)).total_seconds(), abs=5)
    assert made.idle == pytest.approx(3600, abs=5)


def test_rows_without_attempts_took_what_lies_between_their_times() -> None:
    made = took(at(0), at(7), [])
    assert made is not None and (made.worked, made.idle) == (420, None)


@pytest.fixture
def paused(db: None, home: Path) -> Round:
    """A round of 2 h 10 min: two attempts at training with an hour between them."""
    experiment = Experiment.objects.create(name="x", rounds_planned=1)
    round_ = Round.objects.create(
        experiment=experiment, number=0, state="succeeded", started_at=at(0), ended_at=at(130)
    )
    for kind in STAGE_ORDER:
        Stage.objects.create(round=round_, kind=kind, state=State.SUCCEEDED)
    train = round_.stages.get(kind="train")
    Stage.objects.filter(pk=train.pk).update(started_at=at(0), ended_at=at(130))
    for number, (start, end) in enumerate([(0, 10), (70, 130)], 1):
        AttemptRow.objects.create(
            stage=train, number=number, started_at=at(start), ended_at=at(end),
            state=State.STOPPED if number == 1 else State.SUCCEEDED,
        )  # fmt: skip
    return round_


def test_every_page_tells_the_work_and_the_pause(paused: Round, viewer_client: Client) -> None:
    html = viewer_client.get("/experiments/x/rounds/0/").content.decode()
    assert "1 h 10 min" in html and "1 h 00 min more paused or waiting" in html
    assert "2 h 10 min" not in html, "neither the round nor the stage worked that long"
    html = viewer_client.get("/experiments/x/").content.decode()
    assert "1 h 10 min" in html and "+ 1 h 00 min idle" in html
    (row,) = viewer_client.get("/experiments/x/?format=json").json()["rounds"]
    assert (row["seconds"], row["idle_seconds"]) == (4200, 3600)
    assert round_figures(paused)["seconds"] == 4200
