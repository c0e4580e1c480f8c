"""Buttons are legal moves; who may press them, how, and what follows."""

from __future__ import annotations

import pytest
from django.db import OperationalError
from django.test import Client

from intraskill_web.core.models import AuditEvent
from intraskill_web.experiments import views
from intraskill_web.experiments.actions import ACTIONS, buttons
from intraskill_web.experiments.flow import new_round
from intraskill_web.experiments.models import Attempt, Experiment, Round, Stage
from intraskill_web.experiments.moves import move, new_attempt, refresh_round
from jobs.transitions import ACTIVE, State

ALWAYS = {"extend", "until", "hold"}


@pytest.fixture
def experiment(db: None) -> Experiment:
    return Experiment.objects.create(name="mine", rounds_planned=2)


def press(client: Client, action: str, **data: str):  # type: ignore[no-untyped-def]
    return client.post(f"/experiments/mine/actions/{action}/", data)


def shown(experiment: Experiment, *, may_operate: bool = True) -> dict[str, tuple[bool, str]]:
    experiment.refresh_from_db()
    last = experiment.rounds.order_by("-number").first()
    stages = list(last.stages.all()) if last else []
    made = buttons(experiment, last, stages, may_operate=may_operate)
    return {button.key: (button.enabled, button.why) for button in made}


def enabled(experiment: Experiment) -> set[str]:
    return {key for key, (on, _why) in shown(experiment).items() if on}


def running(experiment: Experiment) -> Attempt:
    round_ = new_round(experiment, 0)
    attempt = new_attempt(round_.stages.get(kind="freeze"))
    move(attempt, State.STARTING)
    move(attempt, State.RUNNING)
    return attempt


def finish(round_: Round) -> None:
    Stage.objects.filter(round=round_).update(state=State.SUCCEEDED)
    refresh_round(round_)


@pytest.mark.parametrize("action", ACTIONS)
def test_a_viewer_may_not_act(experiment: Experiment, viewer_client: Client, action: str) -> None:
    assert press(viewer_client, action).status_code == 403
    assert not AuditEvent.objects.exists()


@pytest.mark.parametrize("action", ACTIONS)
def test_actions_are_not_taken_by_reading(
    experiment: Experiment, operator_client: Client, action: str
) -> None:
    assert operator_client.get(f"/experiments/mine/actions/{action}/").status_code == 405


def test_actions_need_the_token_of_the_form(experiment: Experiment, operator: object) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator)  # type: ignore[arg-type]
    assert press(client, "start").status_code == 403


def test_an_unknown_action_is_a_404(experiment: Experiment, operator_client: Client) -> None:
    assert press(operator_client, "explode").status_code == 404


def test_a_viewer_sees_the_buttons_greyed_with_the_reason(experiment: Experiment) -> None:
    found = shown(experiment, may_operate=False)
    assert all(not on for on, _why in found.values())
    assert {why for _on, why in found.values()} == {"Needs the role operator"}


def test_before_the_first_round_only_starting_and_planning_are_legal(
    experiment: Experiment,
) -> None:
    assert enabled(experiment) == {"start", "change", *ALWAYS}
    assert shown(experiment)["stop"][1] == "Nothing is running"
    assert shown(experiment)["resume"][1] == "No round has begun"


def test_while_a_stage_runs_it_can_be_stopped_and_paused(experiment: Experiment) -> None:
    running(experiment)
    assert enabled(experiment) == {"stop", "pause", *ALWAYS}
    assert shown(experiment)["resume"][1] == "Freeze is running; stop it first"
    assert shown(experiment)["pause"][1] == "Holds before train"


def test_a_pause_says_whether_it_is_still_to_come(experiment: Experiment) -> None:
    attempt = running(experiment)
    Experiment.objects.update(pause_after_stage=True)
    assert shown(experiment)["unpause"] == (True, "Now: pauses after this stage")
    move(attempt, State.SUCCEEDED)
    assert shown(experiment)["unpause"] == (True, "Paused; waits for you")


def test_a_stopping_stage_cannot_be_stopped_again(experiment: Experiment) -> None:
    attempt = running(experiment)
    move(attempt, State.STOPPING)
    assert "stop" not in enabled(experiment)


@pytest.mark.parametrize("state", [State.FAILED, State.STOPPED, State.LOST, State.INCOMPLETE])
def test_a_stage_that_ended_badly_can_be_resumed(experiment: Experiment, state: State) -> None:
    attempt = running(experiment)
    if state is State.STOPPED:
        move(attempt, State.STOPPING)
    move(attempt, state)
    assert enabled(experiment) == {"resume", "change", *ALWAYS}
    assert shown(experiment)["start"][1] == "Needs a finished round 0"


def test_after_a_finished_round_the_next_can_start(experiment: Experiment) -> None:
    finish(new_round(experiment, 0))
    assert enabled(experiment) == {"start", "change", *ALWAYS}
    finish(new_round(experiment, 1))
    assert enabled(experiment) == ALWAYS - {"hold"}
    assert shown(experiment)["hold"][1] == "All 2 planned rounds are finished"
    assert shown(experiment)["start"][1] == "All 2 planned rounds have begun"


def test_planning_more_asks_first_once_the_test_split_was_played(
    experiment: Experiment, operator_client: Client
) -> None:
    finish(new_round(experiment, 0))
    page = "/experiments/mine/"
    assert "confirm-extend" not in operator_client.get(page).content.decode()
    finish(new_round(experiment, 1))
    text = operator_client.get(page).content.decode()
    assert 'data-confirm="#confirm-extend"' in text and 'data-confirm="#confirm-until"' in text
    assert "round 1 has played it" in text
    assert shown(experiment)["extend"][1] == "The test split will be played again"
    assert text.count('name="reason" maxlength="300" required') == 2
    for action, sent in (("extend", {}), ("until", {"rounds": "3"})):
        address = f"/experiments/mine/actions/{action}/?format=json"
        refused = operator_client.post(address, sent)
        assert refused.status_code == 409 and "say why" in refused.json()["error"]
    operator_client.post("/experiments/mine/actions/extend/", {"reason": "it still rises"})
    experiment.refresh_from_db()
    assert experiment.rounds_planned == 3
    assert AuditEvent.objects.latest("pk").detail == {"rounds": 3, "reason": "it still rises"}
    Experiment.objects.update(rounds_planned=2)
    Stage.objects.filter(round__number=1, kind="select").update(state=State.SKIPPED)
    assert "confirm-extend" not in operator_client.get(page + "?again").content.decode()


def test_after_the_last_round_the_next_cannot_be_edited_and_the_page_says_where_to_plan_more(
    experiment: Experiment, operator_client: Client
) -> None:
    finish(new_round(experiment, 0))
    page = "/experiments/mine/next/"
    assert "readonly" not in operator_client.get(page).content.decode()
    finish(new_round(experiment, 1))
    text = operator_client.get(page).content.decode()
    assert "readonly" in text and "Show the difference" not in text
    assert 'All 2 planned rounds have begun · <a href="/experiments/mine/#b-more">' in text


@pytest.mark.parametrize("wanted", ["", "?format=json"])
def test_a_locked_database_is_said_and_changes_nothing(
    experiment: Experiment,
    operator_client: Client,
    monkeypatch: pytest.MonkeyPatch,
    wanted: str,
) -> None:
    def locked(*_arguments: object) -> str:
        raise OperationalError("database is locked")

    monkeypatch.setattr(views, "perform", locked)
    answer = operator_client.post(f"/experiments/mine/actions/start/{wanted}", follow=True)
    assert answer.status_code == (503 if wanted else 200)
    assert "The database is busy; nothing was changed" in answer.content.decode()


def test_what_a_button_promises_the_service_grants(
    experiment: Experiment, operator_client: Client, operator: object
) -> None:
    assert press(operator_client, "start").status_code == 302
    assert experiment.rounds.count() == 1
    event = AuditEvent.objects.get(action="round.start")
    assert event.actor == operator
    assert press(operator_client, "pause").status_code == 302
    experiment.refresh_from_db()
    assert experiment.pause_after_stage
    press(operator_client, "unpause")
    press(operator_client, "extend")
    experiment.refresh_from_db()
    assert (experiment.pause_after_stage, experiment.rounds_planned) == (False, 3)
    press(operator_client, "stop")
    assert Attempt.objects.get().state == State.STOPPED
    press(operator_client, "resume")
    assert Attempt.objects.count() == 2


def test_a_refusal_says_what_to_do_and_changes_nothing(
    experiment: Experiment, operator_client: Client
) -> None:
    new_round(experiment, 0)
    response = operator_client.post("/experiments/mine/actions/start/?format=json")
    assert response.status_code == 409
    assert "round 0 is planned" in response.json()["error"]
    text = operator_client.post("/experiments/mine/actions/start/", follow=True).content.decode()
    assert "round 0 is planned" in text
    assert experiment.rounds.count() == 1


def test_one_is_sent_back_to_where_one_was_but_never_elsewhere(
    experiment: Experiment, operator_client: Client
) -> None:
    back = press(operator_client, "extend", next="/experiments/mine/rounds/0/")
    assert back["Location"] == "/experiments/mine/rounds/0/"
    for elsewhere in ("https://elsewhere.example/", "//elsewhere.example", "nowhere", "1", "é\n"):
        away = press(operator_client, "extend", next=elsewhere)
        assert away["Location"] == "/experiments/mine/", elsewhere


def test_of_two_who_press_the_same_button_one_plans_the_round(
    experiment: Experiment, operator_client: Client
) -> None:
    new_round(experiment, 0)
    offered = experiment.rounds_planned + 1
    shown = operator_client.get("/experiments/mine/rounds/0/").content.decode()
    assert f'name="rounds" value="{offered}"' in shown
    for _ in range(2):
        press(operator_client, "extend", rounds=str(offered))
    experiment.refresh_from_db()
    assert experiment.rounds_planned == offered
    press(operator_client, "extend", rounds="1")  # an old page takes nobody's plan back
    experiment.refresh_from_db()
    assert experiment.rounds_planned == offered


def test_an_action_meant_for_another_round_is_refused_and_changes_nothing(
    experiment: Experiment, operator_client: Client
) -> None:
    attempt = running(experiment)
    finish(attempt.stage.round)
    Attempt.objects.update(state=State.SUCCEEDED)
    for round_, words in (("7", "the next round is 1"), ("x", "whole number"), ("-1", "whole")):
        for where in ({"data": {"round": round_}}, {"QUERY_STRING": f"round={round_}&format=json"}):
            query = {"QUERY_STRING": "format=json"} | where
            answer = operator_client.post("/experiments/mine/actions/start/", **query)  # type: ignore[arg-type]
            assert answer.status_code == 400 and words in answer.json()["error"]
    assert experiment.rounds.count() == 1
    start = "/experiments/mine/actions/start/?format=json"
    assert operator_client.post(start, {"round": "1"}).json()["round"] == 1
    for action in ("stop", "resume", "pause", "unpause", "extend", "until", "hold"):
        address = f"/experiments/mine/actions/{action}/?format=json"
        answer = operator_client.post(address, {"round": "0", "rounds": "2"})
        assert answer.status_code == 400
        assert "only the latest round, 1, can be acted on" in answer.json()["error"]
    assert Stage.objects.get(round__number=1, kind="freeze").state in ACTIVE
    stop = "/experiments/mine/actions/stop/?format=json"
    assert operator_client.post(stop, {"round": "1"}).status_code == 200
