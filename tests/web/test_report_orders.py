"""Evaluation orders: planned first, the test split guarded, played for real, read by analyses."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from intraskill_web.core.models import AuditEvent
from intraskill_web.experiments.models import Experiment
from intraskill_web.reports import orders
from intraskill_web.reports.models import EvaluationOrder
from intraskill_web.reports.silence import SILENT_S
from jobs.layout import RoundPlan, read_experiment
from jobs.pipeline import PIPELINE
from jobs.reports.orders import run_order
from trainer.analysis import read_run
from trainer.errors import InputError
from trainer.files import read_json, read_jsonl, write_json

pytestmark = pytest.mark.django_db
REPOSITORY = Path(__file__).resolve().parents[2]
LIST = "/experiments/tiny/evaluations/"


@pytest.fixture
def experiment(home: Path) -> Experiment:
    """A run that has a starting checkpoint, a trained one (the same weights) and two banks."""
    text = (REPOSITORY / "configs/mini/quick.yaml").read_text(encoding="utf-8")
    config = yaml.safe_load(text) | {"name": "tiny"}
    folder = home / "runs" / "tiny"
    shipped = REPOSITORY / "configs/mini"
    for place in ("start/checkpoint", "round-000/train/checkpoint"):
        shutil.copytree(shipped / "checkpoint", folder / place)
    (folder / "round-000/gate").mkdir()
    for place in ("start", "round-000", "round-000/gate"):
        name = "selected_skillbank.json" if place.endswith("gate") else "skillbank.json"
        shutil.copyfile(shipped / "skillbank.json", folder / place / name)
    config["start"] = {"skillbank": "start/skillbank.json", "checkpoint": "start/checkpoint"}
    write_json(folder / "experiment.json", config)
    return Experiment.objects.create(name="tiny", config=config)


@pytest.fixture
def handed_in(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, str]]:
    jobs: list[tuple[str, int, str]] = []
    monkeypatch.setattr(orders, "enqueue_work_on_commit", lambda *job: jobs.append(job))
    return jobs


def test_checkpoints_and_banks_are_those_in_the_run_folder(experiment: Experiment) -> None:
    assert [c.path for c in orders.checkpoints(experiment)] == [
        "start/checkpoint", "round-000/train/checkpoint",
    ]  # fmt: skip
    assert [c.key for c in orders.banks(experiment)] == ["", "S0", "S1"]
    arms = orders.four_conditions(experiment)
    assert [(a.name, a.bank) for a in arms] == [
        ("base_free", ""), ("base_s0", "S0"), ("final_free", ""), ("final_st", "S1"),
    ]  # fmt: skip


def test_a_plan_plays_nothing(
    experiment: Experiment, operator_client: Client, handed_in: list[tuple[str, int, str]]
) -> None:
    operator_client.post(LIST + "plan/", {"preset": "four", "split": "test", "repeats": "1"})
    order = EvaluationOrder.objects.get()
    assert (order.state, order.split, len(order.arms)) == ("planned", "test", 4)
    assert handed_in == []
    assert AuditEvent.objects.filter(action="order.plan", experiment="tiny").count() == 1
    assert not order.folder.exists()
    html = operator_client.get(LIST).content.decode()
    assert "Play the test split" in html
    assert "base_s0: 0 + S0" in html


@pytest.mark.parametrize(
    ("given", "recorded"),
    [
        ({}, False),
        ({"confirm": "tiny"}, False),
        ({"confirm": "other", "reason": "final figures"}, False),
        ({"confirm": "tiny", "reason": "  "}, False),
        ({"confirm": "tiny", "reason": "final figures"}, True),
    ],
)
def test_the_test_split_needs_the_name_and_a_reason(
    *, experiment: Experiment, operator_client: Client, operator: User,
    handed_in: list[tuple[str, int, str]], given: dict[str, str], recorded: bool,
) -> None:  # fmt: skip
    arms = orders.four_conditions(experiment)
    order = orders.plan_order(experiment, arms, split="test", actor=operator)
    operator_client.post(f"{LIST}{order.name}/run/", given)
    order.refresh_from_db()
    assert (order.state == "requested") is recorded
    assert bool(handed_in) is recorded
    events = AuditEvent.objects.filter(action="order.run")
    assert events.count() == int(recorded)
    if recorded:
        event = events.get()
        assert (event.actor, event.detail["split"], event.detail["reason"]) == (
            operator, "test", "final figures",
        )  # fmt: skip


def test_a_viewer_can_neither_plan_nor_run(experiment: Experiment, viewer_client: Client) -> None:
    assert viewer_client.post(LIST + "plan/", {"preset": "four"}).status_code == 403
    assert viewer_client.post(LIST + "order-001/run/").status_code == 403
    assert viewer_client.post(LIST + "order-001/stop/").status_code == 403
    assert "Plan an evaluation" not in viewer_client.get(LIST).content.decode()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"split": "train"}, "must be test or val"),
        ({"repeats": 99}, "between 1 and 16"),
        ({"limit": 1}, "two tasks"),
        ({"arms": []}, "needs an arm"),
    ],
)
def test_what_cannot_be_played_is_refused(
    experiment: Experiment, changes: dict[str, object], said: str
) -> None:
    given = {"arms": orders.four_conditions(experiment), "split": "val", **changes}
    with pytest.raises(InputError, match=said):
        orders.plan_order(experiment, given.pop("arms"), actor=None, **given)  # type: ignore[arg-type]


def test_unknown_checkpoints_and_banks_are_refused(experiment: Experiment) -> None:
    with pytest.raises(InputError, match="no such checkpoint"):
        orders.chosen_arm(experiment, "777", "")
    with pytest.raises(InputError, match="no such bank"):
        orders.chosen_arm(experiment, "0", "../../etc")


def test_imported_runs_cannot_be_played(experiment: Experiment) -> None:
    arms = orders.four_conditions(experiment)
    experiment.config["imported"] = "published"
    with pytest.raises(InputError, match="embedded engine"):
        orders.plan_order(experiment, arms, split="val", actor=None)


def test_an_order_whose_worker_was_lost_can_be_handed_in_again(
    experiment: Experiment, handed_in: list[tuple[str, int, str]], operator_client: Client
) -> None:
    arms = orders.four_conditions(experiment)[:1]
    order = orders.plan_order(experiment, arms, split="val", limit=6, actor=None)
    orders.run_order(order, actor=None)
    rows = EvaluationOrder.objects.filter(pk=order.pk)
    rows.update(state="running", heartbeat_at=timezone.now() - timedelta(seconds=10))
    with pytest.raises(InputError, match="being played"):
        orders.run_order(order, actor=None)
    assert b">Resume<" not in operator_client.get(LIST).content
    rows.update(heartbeat_at=timezone.now() - timedelta(seconds=SILENT_S + 1))
    assert b">Resume<" in operator_client.get(LIST).content
    orders.run_order(order, actor=None)
    assert rows.get().state == "requested"
    with pytest.raises(InputError, match="being played"):
        orders.run_order(order, actor=None)
    rows.update(heartbeat_at=timezone.now() - timedelta(seconds=SILENT_S + 1))
    orders.run_order(order, actor=None)  # the queue lost it
    assert len(handed_in) == 3


@pytest.mark.slow
def test_an_order_is_played_for_real_resumed_and_found_by_the_analysis(
    experiment: Experiment, handed_in: list[tuple[str, int, str]]
) -> None:
    arms = orders.four_conditions(experiment)[:2]
    order = orders.plan_order(experiment, arms, split="test", limit=6, actor=None)
    orders.run_order(order, actor=None, confirmed_name="tiny", reason="a test of the test")
    run_order(order.pk)
    order.refresh_from_db()
    assert (order.state, order.error) == ("succeeded", "")
    assert (order.done, order.total) == (12, 12)
    summary = read_json(order.folder / "base_free/summary.json")
    assert summary["counts"]["completed"] == 6
    before = list(read_jsonl(order.folder / "base_free/traces.jsonl"))
    EvaluationOrder.objects.filter(pk=order.pk).update(state="requested")
    run_order(order.pk)  # everything is there: nothing is played again
    assert list(read_jsonl(order.folder / "base_free/traces.jsonl")) == before
    test = next(t for t in read_run(experiment.folder).tests if t.split == "test")
    assert [(a.condition, a.figures["reward"].n) for a in test.arms] == [
        ("base_free", 6), ("base_s0", 6),
    ]  # fmt: skip
    assert [c.name for c in test.contrasts] == ["initial_skill"]
    ended = AuditEvent.objects.filter(action="order.end").first()
    assert ended is not None and ended.detail == {"state": "succeeded", "split": "test"}


def test_a_changed_order_is_not_continued(
    experiment: Experiment, handed_in: list[tuple[str, int, str]]
) -> None:
    arms = orders.four_conditions(experiment)[:1]
    order = orders.plan_order(experiment, arms, split="val", actor=None)
    write_json(order.folder / "order.json", {"split": "test"})
    orders.run_order(order, actor=None)
    run_order(order.pk)
    order.refresh_from_db()
    assert order.state == "failed"
    assert "holds another order" in order.error


def test_no_command_of_a_round_reads_what_the_test_or_an_order_played(
    experiment: Experiment,
) -> None:
    config = read_experiment(experiment.folder)
    plan = RoundPlan(config=config, run=experiment.folder, number=1, rounds=2)
    for kind, stage in PIPELINE.items():
        for command in stage.commands(plan):
            for part in command.parts:
                text = part.config.model_dump_json()
                assert "orders/" not in text, kind
                if kind != "select":
                    assert "/test/" not in text, kind
        assert not [p for p in stage.needs(plan) if "orders" in p.parts or "test" in p.parts], kind


def test_what_an_order_found_stands_beside_its_arms(
    experiment: Experiment, viewer_client: Client
) -> None:
    arms = orders.four_conditions(experiment)[:2]
    order = orders.plan_order(experiment, arms, split="val", limit=5, actor=None)
    summary = {
        "counts": {"scored": 5}, "primary": {"success_rate": 0.6, "reward_mean": 0.7333},
    }  # fmt: skip
    write_json(order.folder / "base_free" / "summary.json", summary)

    def told() -> list[tuple[str, int, float | None]]:
        [row] = viewer_client.get(f"{LIST}?format=json").json()["orders"]
        return [(r["arm"], r["n"], r["success"]) for r in row["results"]]

    assert told() == [("base_free", 0, None), ("base_s0", 0, None)]  # planned: nothing to tell
    EvaluationOrder.objects.filter(pk=order.pk).update(state="succeeded")
    assert told() == [("base_free", 5, 0.6), ("base_s0", 0, None)]  # no summary of the other
    html = viewer_client.get(LIST).content.decode()
    assert "<b>0.600</b>" in html and "reward 0.733, n 5" in html
