"""The pages for going on otherwise: the difference is seen before anything starts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from intraskill_web.core import audit
from intraskill_web.core.models import AuditEvent
from intraskill_web.experiments.flow import new_round
from intraskill_web.experiments.models import Attempt, Experiment, Round
from intraskill_web.experiments.moves import move, new_attempt
from jobs.transitions import State
from tests.web.html import Page
from trainer.experiment_config import ExperimentConfig

NEXT = "/experiments/mine/next/"


@pytest.fixture
def experiment(db: None, home: Path) -> Experiment:
    config = ExperimentConfig.model_validate(
        {"name": "mine", "start": {"skillbank": "/s0.json", "checkpoint": "/checkpoint"}}
    )
    return Experiment.objects.create(
        name="mine", rounds_planned=2, config=config.model_dump(mode="json")
    )


@pytest.fixture
def failed(experiment: Experiment) -> Attempt:
    attempt = new_attempt(new_round(experiment, 0).stages.get(kind="analyse"))
    move(attempt, State.STARTING)
    move(attempt, State.FAILED)
    attempt.stage.round.stages.filter(position__lt=attempt.stage.position).update(
        state=State.SUCCEEDED
    )
    return attempt


def text_of(answer: object) -> str:
    return answer.content.decode()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "path", [NEXT, "/experiments/mine/rounds/0/stages/analyse/retry/",
             "/experiments/mine/rounds/0/stages/analyse/skip/"],
)  # fmt: skip
def test_viewers_may_not_rework(failed: Attempt, viewer_client: Client, path: str) -> None:
    assert viewer_client.get(path).status_code == 403
    assert viewer_client.post(path).status_code == 403


@pytest.mark.parametrize("text", ["a: 2026-13-99", "[" * 5000, r'a: "\ud800"', "a: &a [*a]"])
def test_a_text_that_holds_no_settings_is_said(
    experiment: Experiment, operator_client: Client, text: str
) -> None:
    answer = operator_client.post(f"{NEXT}?format=json", {"config": text})
    assert answer.status_code < 500
    assert "not valid YAML" in text_of(answer)


def test_a_change_starts_only_after_its_difference_was_seen(
    experiment: Experiment, operator_client: Client
) -> None:
    assert "skill_free_probability: 0.2" in text_of(operator_client.get(NEXT))
    changed = {"config": "curriculum: {rho_max: 0.7}"}
    shown = operator_client.post(NEXT, changed)
    assert shown.status_code == 200 and not Round.objects.exists()
    page = text_of(shown)
    assert ">curriculum.rho_max<" in page and "<del>0.9</del>" in page and "<ins>0.7</ins>" in page
    assert Page(page).policy_faults() == []
    forged = operator_client.post(NEXT, {**changed, "seen": "0" * 64})
    assert forged.status_code == 200 and not Round.objects.exists()
    seen = shown.context["draft"].seen
    done = operator_client.post(NEXT, {**changed, "seen": seen})
    assert done["Location"] == "/experiments/mine/rounds/0/"
    assert Round.objects.get().config["curriculum"]["rho_max"] == 0.7


def test_a_wrong_value_is_shown_beside_its_field(
    experiment: Experiment, operator_client: Client
) -> None:
    answer = operator_client.post(NEXT, {"config": "curriculum: {rho_max: 7}"})
    assert answer.status_code == 409
    assert "curriculum.rho_max" in text_of(answer) and "less than or equal to 1" in text_of(answer)
    assert "rho_max: 7" in text_of(answer), "what was typed is kept"


def test_a_program_sends_its_values_at_once_and_gets_the_status(
    experiment: Experiment, operator_client: Client
) -> None:
    answer = operator_client.post(f"{NEXT}?format=json", {"config": '{"gate": {"mode": "keep"}}'})
    assert answer.json()["ok"] and answer.json()["stages"][0]["stage"] == "freeze"
    refused = operator_client.post(f"{NEXT}?format=json", {"config": "{}"})
    assert refused.status_code == 409 and "round 0 is running" in refused.json()["error"]


def test_a_next_round_that_may_not_begin_says_why_before_anything_is_typed(
    failed: Attempt, operator_client: Client
) -> None:
    page = text_of(operator_client.get(NEXT))
    assert "Needs a finished round 0" in page and "Look at the difference first" not in page
    shown = operator_client.post(NEXT, {"config": "curriculum: {rho_max: 0.7}"})
    assert 'name="seen"' not in text_of(shown)


def test_a_failed_stage_offers_changes_and_skipping(
    failed: Attempt, operator_client: Client
) -> None:
    page = text_of(operator_client.get("/experiments/mine/rounds/0/"))
    assert "/experiments/mine/rounds/0/stages/analyse/retry/" in page
    assert "/experiments/mine/rounds/0/stages/analyse/skip/" in page
    address = "/experiments/mine/rounds/0/stages/analyse/skip/"
    assert operator_client.post(address, {"reason": " "}).status_code == 409
    done = operator_client.post(address, {"reason": "no endpoint tonight"})
    assert done.status_code == 302
    latest = Attempt.objects.latest("pk")
    assert (latest.number, latest.skip_reason) == (2, "no endpoint tonight")
    for state in (State.STARTING, State.RUNNING, State.SKIPPED):
        assert move(latest, state, message=latest.skip_reason)
    page = text_of(operator_client.get("/experiments/mine/rounds/0/"))
    assert "no endpoint tonight" in page and "Skipped" in page


def test_a_stage_that_was_retried_with_changes_says_so(
    failed: Attempt, operator_client: Client
) -> None:
    address = "/experiments/mine/rounds/0/stages/analyse/retry/?format=json"
    sent = {"config": "gate: {active_skill_budget: 4}"}
    assert operator_client.post(address, sent).json()["ok"]
    page = text_of(operator_client.get("/experiments/mine/rounds/0/"))
    latest = Attempt.objects.latest("pk")
    own = f"/jobs/attempts/{latest.pk}/"
    assert (f"{own}#changes", "1 changed setting") in Page(page).links
    changed = {"gate.active_skill_budget": [10, 4]}
    assert operator_client.get(f"{own}?format=json").json()["changes"] == changed
    page = text_of(operator_client.get(own))
    assert ">gate.active_skill_budget<" in page
    assert "<del>10</del>" in page and "<ins>4</ins>" in page


def test_a_round_says_what_it_changed_and_who_started_it(
    experiment: Experiment, operator_client: Client, viewer_client: Client
) -> None:
    here = "/experiments/mine/rounds/1/"
    for _round in range(2):
        operator_client.post(f"{NEXT}?format=json", {"config": "curriculum: {rho_max: 0.7}"})
        if not Round.objects.filter(number=1).exists():
            Round.objects.get().stages.update(state=State.SUCCEEDED)
            Round.objects.update(state=State.SUCCEEDED)
            Attempt.objects.update(state=State.SUCCEEDED)
    assert viewer_client.get(f"{here}?format=json").json()["changes"] == {}
    assert "since the round before" not in text_of(viewer_client.get(here))
    attempt = Attempt.objects.latest("pk")
    for rate, state in ((0.5, State.STOPPED), (0.6, State.STOPPED)):
        move(attempt, State.STOPPING), move(attempt, state)
        sent = {"config": f"curriculum: {{rho_max: {rate}}}"}
        retry = f"{here}stages/freeze/retry/?format=json"
        assert operator_client.post(retry, sent).json()["ok"]
        attempt = Attempt.objects.latest("pk")
    data = viewer_client.get(f"{here}?format=json").json()
    assert data["changes"] == {"curriculum.rho_max": [0.7, 0.6]}
    assert data["started_by"] == "olaf"
    page = text_of(viewer_client.get(here))
    assert ("#changes", "1 change since the round before") in Page(page).links
    assert 'id="changes"' in page and "<del>0.7</del>" in page and "<ins>0.6</ins>" in page
    assert "Started by <b>olaf</b>" in page


def test_who_resumes_into_a_round_started_it_and_one_of_a_deleted_namesake_did_not(
    experiment: Experiment, operator_client: Client, operator: User
) -> None:
    audit.record("round.start", experiment="mine", subject="round 0")
    AuditEvent.objects.update(at=experiment.created_at - timedelta(days=1))
    assert operator_client.post("/experiments/mine/actions/resume/?format=json").json()["ok"]
    page = "/experiments/mine/rounds/0/"
    assert operator_client.get(f"{page}?format=json").json()["started_by"] == "olaf"
    AuditEvent.objects.update(actor=None)
    assert "Started by" not in text_of(operator_client.get(f"{page}?again"))


def test_the_queue_and_an_attempt_name_the_owner(
    failed: Attempt, viewer_client: Client, operator: User
) -> None:
    Experiment.objects.update(owner=operator)
    for address in ("/jobs/", f"/jobs/attempts/{failed.pk}/"):
        assert "olaf" in text_of(viewer_client.get(address))
    assert viewer_client.get("/jobs/?format=json").json()["finished"][0]["owner"] == "olaf"


def test_an_action_answers_a_program_with_the_rounds_status(
    experiment: Experiment, operator_client: Client
) -> None:
    answer = operator_client.post("/experiments/mine/actions/start/?format=json").json()
    assert {"ok", "experiment", "round", "state", "stages"} <= set(answer)
    assert {"stage", "state", "attempt", "done", "total", "eta_seconds"} <= set(answer["stages"][0])
    until = "/experiments/mine/actions/until/?format=json"
    for rounds, status in (("x", 400), ("", 400), ("10001", 409)):
        bad = operator_client.post(until, {"rounds": rounds})
        assert bad.status_code == status and bad.json()["error"].startswith("rounds: ")
    operator_client.post("/experiments/mine/actions/until/", {"rounds": "5"})
    assert Experiment.objects.get().rounds_planned == 5
