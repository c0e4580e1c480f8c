"""What a sweep will take and cost is told from finished stages, prices and budgets."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from intraskill_web.experiments.estimate import Money, estimate
from intraskill_web.experiments.models import Attempt, Experiment, Round, Stage
from intraskill_web.experiments.states import STAGE_ORDER
from intraskill_web.experiments.sweeps import arm_configs, base_config
from jobs.transitions import State
from tests.web.html import Page
from trainer.experiment_config import ExperimentConfig

# of a server whose calls have a price
ENDPOINT = {"base_url": "http://llm", "model": "judge", "prices": {"currency": "CNY", "input": 2.0}}


def quick(**changes: Any) -> ExperimentConfig:
    return base_config("mini/quick").model_copy(update=changes)


def priced(**endpoint: Any) -> ExperimentConfig:
    values = quick().model_dump(mode="json")
    values["analyst"] = {"kind": "endpoint", "endpoint": ENDPOINT | endpoint}
    return ExperimentConfig.model_validate(values)


def finished(config: ExperimentConfig, seconds: dict[str, float], cost: float = 0.0) -> None:
    """A finished last round of one planned, whose stages worked so long with an hour's pause."""
    made = Experiment.objects.create(
        name=f"done-{Experiment.objects.count()}", rounds_planned=1,
        config=config.model_dump(mode="json"),
    )  # fmt: skip
    round_ = Round.objects.create(experiment=made, number=0, state="succeeded")
    begun = timezone.now() - timedelta(days=1)
    for kind in STAGE_ORDER:
        stage = Stage.objects.create(round=round_, kind=kind, state=State.SUCCEEDED)
        if kind == "analyse" and cost:
            Stage.objects.filter(pk=stage.pk).update(outcome={"cost": cost, "currency": "CNY"})
        for number in (1, 2):
            at = begun + timedelta(hours=number)
            Attempt.objects.create(
                stage=stage, number=number, state=State.SUCCEEDED if number == 2 else State.STOPPED,
                started_at=at, ended_at=at + timedelta(seconds=seconds[kind] / 2),
            )  # fmt: skip


TOOK = {"freeze": 80.0, "train": 640.0, "analyse": 5.0, "validate": 80.0, "gate": 40.0,
        "select": 20.0}  # fmt: skip


def test_nothing_is_told_where_no_stage_has_finished(db: None) -> None:
    made = estimate([quick(rounds=3)] * 2)
    assert (made.experiments, made.rounds, made.seconds, made.round_seconds) == (2, 6, None, None)


def test_a_round_like_a_finished_one_takes_what_that_one_worked(db: None) -> None:
    finished(quick(rounds=1), TOOK)
    made = estimate([quick(rounds=1)] * 3)
    assert made.seconds == pytest.approx(3 * sum(TOOK.values())), "an hour's pause is no work"
    assert not made.at_least and made.wall_seconds == made.seconds


def test_what_plays_more_episodes_takes_longer(db: None) -> None:
    finished(quick(rounds=1), TOOK)
    train = quick().train
    longer = quick(rounds=1, train=train.model_copy(update={"steps": 3 * train.steps}))
    more = estimate([longer]).seconds
    assert more == pytest.approx(sum(TOOK.values()) + 2 * TOOK["train"])


def test_a_stage_of_which_nothing_is_known_makes_it_a_lower_bound(db: None) -> None:
    finished(quick(rounds=1), TOOK)
    Stage.objects.filter(kind="train").delete()
    made = estimate([quick(rounds=1)])
    assert made.at_least and made.seconds == pytest.approx(sum(TOOK.values()) - TOOK["train"])


def test_other_worlds_and_engines_teach_nothing(db: None) -> None:
    finished(quick(rounds=1), TOOK)
    Experiment.objects.update(engine="slime")
    assert estimate([quick(rounds=1)]).seconds is None


def test_money_follows_former_bills_else_the_budget_else_is_unknown(db: None) -> None:
    assert estimate([quick()]).money == () and not estimate([quick()]).unknown_price
    assert estimate([priced()]).unknown_price
    bounded = priced(cost_budget=1.5).model_copy(update={"rounds": 4})
    assert estimate([bounded, bounded]).money == (Money(12.0, "CNY", at_most=True),)
    finished(priced(), TOOK, cost=0.25)
    assert estimate([bounded]).money == (Money(1.0, "CNY"),)


def test_an_arm_without_an_analyst_costs_no_money(db: None) -> None:
    arms = arm_configs("s", priced(cost_budget=2.0), arms=["published", "fixed-s0"], seeds=[1])
    (money,) = estimate([config for _arm, config in arms]).money
    assert money.amount == 2.0 * priced().rounds


def test_the_form_shows_time_and_money_with_its_currency(
    db: None, home: Path, operator_client: Client
) -> None:
    config = priced(cost_budget=3.0)
    finished(config, TOOK)
    base = Experiment.objects.get()
    Experiment.objects.filter(pk=base.pk).update(name="base")
    form = {"name": "night", "base": "base", "arms": ["published"], "seeds": "1 2"}
    html = operator_client.post("/sweeps/", form).content.decode()
    assert "What it will cost" in html and "≤ " in html and "CNY" in html
    assert "on 1 host, one after another" in html and "night-published-2" in html
    assert Page(html).policy_faults() == []
