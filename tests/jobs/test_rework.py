"""Going on otherwise: stages tried again with other settings or left out, changed next rounds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from intraskill_web.core.models import AuditEvent
from intraskill_web.episodes.models import Episode, Replay
from intraskill_web.experiments import planning, rework, services
from intraskill_web.experiments.flow import new_round
from intraskill_web.experiments.models import Attempt, Experiment, Round, Stage
from intraskill_web.experiments.moves import move, refresh_round
from intraskill_web.monitoring.models import MetricPoint
from intraskill_web.monitoring.preflight import inputs, machine, run
from intraskill_web.monitoring.preflight.items import Item
from jobs import pipeline
from jobs.layout import Command, RoundPlan
from jobs.plans import plan_of
from jobs.runner import run_attempt
from jobs.stages import gate, select
from jobs.transitions import State
from trainer.errors import InputError
from trainer.files import read_json, write_json

Jobs = list[tuple[int, str]]
RATE = {"train": {"optimiser": {"learning_rate": 1e-4}}}


def begin(experiment: Experiment, kind: str, state: State = State.FAILED) -> Stage:
    """A round whose stages before ``kind`` are done, and whose stage ``kind`` ended so."""
    round_ = services.start_round(experiment)
    stage = round_.stages.get(kind=kind)
    for attempt in Attempt.objects.filter(stage__round=round_):
        if kind != "freeze":
            move(attempt, State.STARTING)
            move(attempt, State.RUNNING)
            move(attempt, State.SUCCEEDED)
    Stage.objects.filter(round=round_, position__lt=stage.position).update(state=State.SUCCEEDED)
    refresh_round(round_)
    if kind != "freeze":
        services.resume_round(experiment)
    attempt = Attempt.objects.latest("pk")
    move(attempt, State.STARTING)
    move(attempt, State.RUNNING)
    assert move(attempt, state)
    return Stage.objects.get(pk=stage.pk)


def test_a_retry_with_changes_is_a_new_attempt_that_records_them(
    experiment: Experiment, handed_in: Jobs, operator: Any
) -> None:
    stage = begin(experiment, "train")
    attempt = rework.retry_with_changes(stage, RATE, actor=operator)
    assert attempt.number == 2
    assert attempt.changes == {"train.optimiser.learning_rate": [5e-05, 1e-4]}
    assert handed_in[-1][0] == attempt.pk
    plan = plan_of(Round.objects.get(pk=stage.round_id))
    assert plan.config.train.optimiser.learning_rate == 1e-4
    frozen = read_json(experiment.folder / "experiment.json")
    assert frozen["train"]["optimiser"]["learning_rate"] == 5e-05, "the experiment stays frozen"
    event = AuditEvent.objects.get(action="stage.retry")
    assert event.actor == operator and event.detail["changes"] == attempt.changes


def test_later_rounds_go_on_with_what_was_changed(experiment: Experiment, handed_in: Jobs) -> None:
    stage = begin(experiment, "train")
    rework.retry_with_changes(stage, RATE)
    following = new_round(experiment, 1)
    assert plan_of(following).config.train.optimiser.learning_rate == 1e-4


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"curriculum": {"rho_max": 0.8}}, "already read by the stage freeze"),
        ({"seed": 3}, "same in all rounds"),
        ({"train": {"steps": 3}}, "same in all rounds"),
        ({"train": {"optimiser": {"learning_rate": -1}}}, "greater than 0"),
        ({"trane": {}}, "not permitted"),
    ],
)
def test_what_a_round_can_no_longer_take_is_refused_by_field(
    experiment: Experiment, handed_in: Jobs, values: dict[str, Any], reason: str
) -> None:
    stage = begin(experiment, "train")
    with pytest.raises(InputError, match=reason) as refusal:
        rework.retry_with_changes(stage, values)
    assert refusal.value.field
    assert Attempt.objects.filter(stage=stage).count() == 1
    assert Round.objects.get(pk=stage.round_id).config == {}


def test_only_the_stage_whose_turn_it_is_can_be_reworked(
    experiment: Experiment, handed_in: Jobs
) -> None:
    stage = begin(experiment, "train")
    freeze = stage.round.stages.get(kind="freeze")
    with pytest.raises(InputError, match="turn"):
        rework.retry_with_changes(freeze, RATE)
    services.resume_round(experiment)
    with pytest.raises(InputError, match="Stop it first"):
        rework.retry_with_changes(stage, RATE)


def test_what_was_made_before_a_change_is_set_aside_with_its_rows(
    experiment: Experiment,
    handed_in: Jobs,
    scripted: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    scripted()
    stage = begin(experiment, "train")
    round_ = stage.round
    write_json(round_.folder / "train" / "manifest.json", {"old": True})
    path = "round-000/train/steps/step-000001.jsonl.gz"
    episode = Episode.objects.create(
        experiment=experiment, round=round_, purpose="train", task_id=1, sample_id=1, path=path,
        line=0, status="complete", split="train", episode_id="one",
    )  # fmt: skip
    replay = Replay.objects.create(episode=episode, checkpoint="start/checkpoint", n=1)
    MetricPoint.objects.create(experiment=experiment, round=round_, name="x", step=1, value=1.0)
    rework.retry_with_changes(stage, RATE)
    assert run_attempt(*handed_in[-1]) == State.SUCCEEDED
    aside = round_.folder / "superseded" / "train-before-attempt-2" / "train" / "manifest.json"
    assert read_json(aside) == {"old": True}
    assert not (round_.folder / "train").exists()
    assert not Episode.objects.exists() and not MetricPoint.objects.exists()
    assert f"the replay whose files are in {replay.folder}" in caplog.text
    assert read_json(round_.folder / "config" / "round.json")["train"]["optimiser"][
        "learning_rate"
    ] == pytest.approx(1e-4)


def test_commands_are_composed_once_and_after_former_files_are_set_aside(
    experiment: Experiment, handed_in: Jobs, scripted: Callable[..., None]
) -> None:
    scripted()
    stage = begin(experiment, "train")
    former = stage.round.folder / "train" / "manifest.json"
    write_json(former, {"old": True})
    compose = pipeline.PIPELINE["train"].commands
    seen: list[bool] = []

    def commands(plan: RoundPlan) -> tuple[Command, ...]:
        seen.append(former.exists())
        return compose(plan)

    scripted(commands=commands)
    rework.retry_with_changes(stage, RATE)
    assert run_attempt(*handed_in[-1]) == State.SUCCEEDED
    assert seen == [False]


def test_nothing_is_set_aside_where_the_stage_reads_no_changed_value(
    experiment: Experiment, handed_in: Jobs, scripted: Callable[..., None]
) -> None:
    scripted()
    stage = begin(experiment, "train")
    kept = stage.round.folder / "train" / "manifest.json"
    write_json(kept, {"old": True})
    rework.retry_with_changes(stage, {"gate": {"active_skill_budget": 4}})
    assert run_attempt(*handed_in[-1]) == State.SUCCEEDED
    assert kept.exists()


def test_a_second_attempt_does_not_set_aside_what_the_first_made_after_the_change(
    experiment: Experiment, handed_in: Jobs, scripted: Callable[..., None]
) -> None:
    scripted()
    stage = begin(experiment, "train")
    rework.retry_with_changes(stage, RATE)
    scripted(needs=lambda plan: (plan.folder / "absent",))
    assert run_attempt(*handed_in[-1]) == State.FAILED
    kept = stage.round.folder / "train" / "manifest.json"
    write_json(kept, {"new": True})
    scripted()
    services.resume_round(experiment)
    assert run_attempt(*handed_in[-1]) == State.SUCCEEDED
    assert kept.exists()


@pytest.mark.parametrize("kind", ["analyse", "gate"])
def test_a_stage_is_skipped_with_a_reason_and_the_round_goes_on(
    experiment: Experiment, handed_in: Jobs, scripted: Callable[..., None], kind: str
) -> None:
    scripted()
    stage = begin(experiment, kind)
    attempt = rework.skip_stage(stage, "the  endpoint\nis down")
    assert run_attempt(*handed_in[-1]) == State.SKIPPED
    stage.refresh_from_db()
    assert (stage.state, stage.message) == ("skipped", "the endpoint is down")
    assert stage.outcome["skipped"] == "the endpoint is down"
    following = Attempt.objects.get(pk=handed_in[-1][0])
    assert following.pk != attempt.pk
    assert following.stage.position == stage.position + 1
    event = AuditEvent.objects.get(action="stage.skip")
    assert event.detail["reason"] == "the endpoint is down"


@pytest.mark.parametrize("kind", ["freeze", "train", "validate", "select"])
def test_a_stage_that_the_round_needs_cannot_be_skipped(
    experiment: Experiment, handed_in: Jobs, kind: str
) -> None:
    stage = begin(experiment, kind)
    with pytest.raises(InputError, match="cannot be left out"):
        rework.skip_stage(stage, "because")


def test_a_skip_needs_a_reason(experiment: Experiment, handed_in: Jobs) -> None:
    stage = begin(experiment, "gate")
    with pytest.raises(InputError, match="say why"):
        rework.skip_stage(stage, "  ")


def test_a_skipped_gate_leaves_the_bank_as_it_was(experiment: Experiment, handed_in: Jobs) -> None:
    round_ = new_round(experiment, 0)
    plan = pipeline.PIPELINE["gate"].without(plan_of(round_))
    write_json(plan.bank, {"skills": []})
    assert gate.commands(plan) == () and gate.needs(plan) != ()
    gate.prepare(plan)
    assert plan.selected_bank.read_bytes() == plan.bank.read_bytes()
    assert gate.yields(plan) == (plan.selected_bank,)


def test_a_skipped_test_plays_nothing(experiment: Experiment, handed_in: Jobs) -> None:
    planning.set_rounds_planned(experiment, 1)
    plan = plan_of(new_round(Experiment.objects.get(), 0))
    assert plan.ends_with_test and select.commands(plan)
    assert select.commands(select.without(plan)) == () == select.yields(select.without(plan))


def test_the_next_round_is_a_clone_with_its_changes_on_record(
    experiment: Experiment, handed_in: Jobs
) -> None:
    changes = rework.change_of_next(experiment, {"curriculum": {"rho_max": 0.8}})
    assert changes == {"curriculum.rho_max": [0.9, 0.8]}
    round_ = rework.start_changed_round(experiment, {"curriculum": {"rho_max": 0.8}})
    assert plan_of(round_).config.curriculum.rho_max == 0.8
    assert Attempt.objects.get().changes == changes
    assert json.dumps(round_.config)


def test_a_changed_round_is_looked_at_with_its_changes(
    experiment: Experiment, handed_in: Jobs, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is red with the settings of before must not hold what will run, and the reverse."""
    settings.INTRASKILL_PREFLIGHT = True
    monkeypatch.setattr(machine, "MIN_FREE_BYTES", 1)

    def only_a_low_rho_is_fit(file: Path) -> list[Item]:
        rho = yaml.safe_load(file.read_text())["curriculum"]["rho_max"]
        return [Item("curriculum", "failed" if rho > 0.85 else "passed", f"rho {rho}")]

    monkeypatch.setattr(run, "_trainer", only_a_low_rho_is_fit)
    with pytest.raises(InputError, match=r"curriculum: rho 0\.9"):
        services.start_round(experiment)
    with pytest.raises(InputError, match=r"curriculum: rho 0\.95"):
        rework.start_changed_round(experiment, {"curriculum": {"rho_max": 0.95}})
    assert not Round.objects.exists()
    assert rework.start_changed_round(experiment, {"curriculum": {"rho_max": 0.8}}).number == 0


def test_the_plan_of_a_changed_round_is_told_with_its_changes(
    experiment: Experiment, handed_in: Jobs
) -> None:
    round_ = rework.start_changed_round(experiment, {"train": {"rollout": {"groups_kept": 4}}})
    items = machine.machine_items(inputs.settings_of(experiment, 1), experiment, 1)
    assert round_.config["train"]["rollout"]["groups_kept"] == 4
    assert "; 32 kept a step" in items[0].detail


def test_going_on_until_begins_the_next_round_and_holding_waits(
    experiment: Experiment, handed_in: Jobs
) -> None:
    planning.set_rounds_planned(experiment, 1)
    round_ = services.start_round(experiment)
    Stage.objects.filter(round=round_).update(state=State.SUCCEEDED)
    Attempt.objects.update(state=State.SUCCEEDED)
    refresh_round(round_)
    planning.hold_after_round(experiment)
    with pytest.raises(InputError, match=r"round 0 has played the test split.*say why"):
        planning.continue_until(experiment, 3)
    planning.set_rounds_planned(experiment, 3, reason="  the gap\nstill closes ")
    assert AuditEvent.objects.latest("pk").detail["reason"] == "the gap still closes"
    assert len(handed_in) == 1
    planning.continue_until(experiment, 3)
    assert Attempt.objects.get(pk=handed_in[1][0]).stage.round.number == 1
    experiment.refresh_from_db()
    assert (experiment.rounds_planned, experiment.auto_continue) == (3, True)
