"""Rows keep their promises: order, uniqueness, folders, roles."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import Group, User
from django.db import IntegrityError
from django.utils import timezone

from intraskill_web.core import audit
from intraskill_web.core.models import AuditEvent
from intraskill_web.experiments.flow import new_round
from intraskill_web.experiments.models import Attempt, Experiment, Round, Stage
from intraskill_web.monitoring.models import MetricPoint

pytestmark = pytest.mark.django_db


@pytest.fixture
def experiment(home: Path) -> Experiment:
    return Experiment.objects.create(name="one", rounds_planned=2)


def test_folders_follow_names_and_numbers(experiment: Experiment, home: Path) -> None:
    round_ = new_round(experiment, 12)
    assert experiment.folder == home / "runs" / "one"
    assert round_.folder == home / "runs" / "one" / "round-012"


def test_a_round_has_its_six_stages_in_order(experiment: Experiment) -> None:
    stages = list(new_round(experiment, 0).stages.all())
    assert [stage.position for stage in stages] == [0, 1, 2, 3, 4, 5]
    assert [stage.kind for stage in stages][:2] == ["freeze", "train"]
    assert {stage.state for stage in stages} == {""}


def test_a_round_exists_once(experiment: Experiment) -> None:
    Round.objects.create(experiment=experiment, number=0)
    with pytest.raises(IntegrityError):
        Round.objects.create(experiment=experiment, number=0)


def test_a_stage_counts_seconds_and_per_cent(experiment: Experiment) -> None:
    start = timezone.now()
    stage = Stage(
        started_at=start, ended_at=start + timedelta(seconds=90), done=3, total=8, kind="train"
    )
    assert stage.seconds == 90
    assert stage.percent == 37
    assert Stage(kind="train").percent is None
    assert Stage(kind="train").seconds is None


def test_only_one_attempt_of_a_stage_is_active(experiment: Experiment) -> None:
    stage = new_round(experiment, 0).stages.get(kind="train")
    Attempt.objects.create(stage=stage, number=1, state="failed")
    Attempt.objects.create(stage=stage, number=2, state="running")
    with pytest.raises(IntegrityError):
        Attempt.objects.create(stage=stage, number=3, state="queued")


def test_a_metric_has_one_value_a_step(experiment: Experiment) -> None:
    round_ = new_round(experiment, 0)
    MetricPoint.objects.create(experiment=experiment, round=round_, name="m", step=1, value=1)
    with pytest.raises(IntegrityError):
        MetricPoint.objects.create(experiment=experiment, round=round_, name="m", step=1, value=2)


def test_roles_exist_and_only_operators_operate(viewer: User, operator: User, admin: User) -> None:
    assert set(Group.objects.values_list("name", flat=True)) >= {"viewer", "operator", "admin"}
    may = "experiments.operate"
    assert not viewer.has_perm(may)
    assert operator.has_perm(may) and not operator.has_perm("auth.add_user")
    assert admin.has_perm(may) and admin.has_perm("auth.add_user")


def test_the_audit_trail_keeps_actor_and_detail(operator: User) -> None:
    audit.record("round.stop", actor=operator, experiment="one", subject="round 0", reason="late")
    audit.record("attempt.lost", experiment="one")
    lost, stopped = AuditEvent.objects.all()
    assert (stopped.actor, stopped.detail) == (operator, {"reason": "late"})
    assert lost.actor is None
