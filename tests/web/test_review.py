"""Comments, labels and sign-offs on gates and chunks; overrides beside the gate's versions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from intraskill_web.core.models import AuditEvent
from intraskill_web.gates.models import Contribution, GateRun
from intraskill_web.review.models import Override, ReviewEvent
from intraskill_web.review.services import Subject, add_event
from intraskill_web.skills.models import ChunkRevision, SkillVersion
from tests.web.factories import Made
from tests.web.html import Page
from trainer.errors import InputError
from trainer.skills.bank import load_bank
from trainer.skills.curriculum_build import build_curriculum

GATE = "/experiments/demo/rounds/0/gate/"
CHUNK = "/experiments/demo/chunks/budget/"
REVIEW = "/experiments/demo/review/"
OVERRIDE = "/experiments/demo/skills/1/override/"


@pytest.fixture
def gate(made: Made) -> GateRun:
    return GateRun.objects.select_related("round__experiment").get(round=made.rounds[0])


def say(client: Client, action: str, text: str = "", **subject: Any) -> int:
    return client.post(REVIEW, {"action": action, "text": text, **subject}).status_code


def review_of(client: Client, path: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"{path}?format=json").json()["review"]
    return found


def test_a_comment_stands_on_the_page_with_author(gate: GateRun, operator_client: Client) -> None:
    assert say(operator_client, "comment", "Looks sound.\nSecond line", gate=gate.pk) == 302
    text = operator_client.get(GATE).content.decode()
    assert "Looks sound." in text and "olaf" in text
    (event,) = review_of(operator_client, GATE)["events"]
    assert (event["kind"], event["by"]) == ("comment", "olaf")
    assert AuditEvent.objects.filter(action="review.comment", experiment="demo").count() == 1


def test_a_label_is_put_on_once_and_taken_off_on_record(
    made: Made, operator_client: Client
) -> None:
    for action in ("label", "label", "unlabel", "unlabel"):
        say(operator_client, action, "bad wording", chunk="budget")
    kinds = [e["kind"] for e in review_of(operator_client, CHUNK)["events"]]
    assert kinds == ["label", "unlabel"]
    assert review_of(operator_client, CHUNK)["labels"] == []


def test_a_sign_off_holds_for_the_result_it_saw(gate: GateRun, operator_client: Client) -> None:
    say(operator_client, "sign", "Checked", gate=gate.pk)
    signed = review_of(operator_client, GATE)["signed"]
    assert (signed["by"], signed["note"], signed["outdated"]) == ("olaf", "Checked", False)
    Contribution.objects.filter(gate=gate, intervention_id="size").update(status="retired")
    assert review_of(operator_client, GATE)["signed"]["outdated"]
    say(operator_client, "unsign", gate=gate.pk)
    assert review_of(operator_client, GATE)["signed"] is None


def test_a_sign_off_of_a_chunk_ends_with_a_rewrite(made: Made, operator: Any) -> None:
    subject = Subject(made.experiment, skill_id="budget")
    add_event(subject, "sign", "", actor=operator)
    assert not subject.standing().outdated
    ChunkRevision.objects.filter(skill_id="budget").update(content_sha256="f" * 64)
    assert subject.standing().outdated


def test_a_review_changes_no_decision(gate: GateRun, operator_client: Client) -> None:
    before = list(gate.contributions.values_list("intervention_id", "status", "rank"))
    for action, text in (("comment", "No!"), ("label", "bad wording"), ("sign", "")):
        say(operator_client, action, text, gate=gate.pk)
    assert list(gate.contributions.values_list("intervention_id", "status", "rank")) == before


def test_viewers_read_and_do_not_write(gate: GateRun, viewer_client: Client) -> None:
    assert say(viewer_client, "comment", "x", gate=gate.pk) == 403
    assert viewer_client.get(OVERRIDE).status_code == 403
    text = viewer_client.get(GATE).content.decode()
    assert "Commenting needs the role operator" in text
    assert not ReviewEvent.objects.exists()


@pytest.mark.parametrize(
    ("action", "text"), [("comment", " "), ("comment", "x" * 4001), ("praise", "x"), ("label", "")]
)
def test_what_says_nothing_is_refused(made: Made, action: str, text: str) -> None:
    with pytest.raises(InputError):
        add_event(Subject(made.experiment, skill_id="budget"), action, text)


def test_only_what_exists_is_reviewed(made: Made, operator_client: Client) -> None:
    for subject in ({"chunk": "nobody"}, {"gate": "999999"}, {}):
        assert say(operator_client, "comment", "x", **subject) == 404
    assert say(operator_client, "comment", "x", gate="x") == 400
    assert operator_client.get(REVIEW).status_code == 405


def test_hostile_remarks_are_shown_and_never_run(gate: GateRun, operator_client: Client) -> None:
    attack = "</textarea><script>alert(1)</script>{{ 7|add:7 }}"
    say(operator_client, "comment", attack, gate=gate.pk)
    say(operator_client, "label", '"><img src=x onerror=alert(1)>', gate=gate.pk)
    page = Page(operator_client.get(GATE).content.decode())
    assert page.policy_faults() == []
    assert not [e for e in page.elements if e[0] == "img"]
    assert "<script>alert(1)</script>{{ 7|add:7 }}" in page.text


def keys(client: Client) -> list[list[Any]]:
    found: list[list[Any]] = client.get(f"{OVERRIDE}?format=json").json()["choices"]
    return found


def test_an_override_is_a_marked_version_with_a_bank_of_its_own(
    made: Made, operator_client: Client
) -> None:
    kept = [key for key, skill_id, own in keys(operator_client) if own and skill_id != "budget"]
    data = {"chunk": kept, "reason": "It repeats what the policy knows"}
    response = operator_client.post(OVERRIDE, data, follow=True)
    made_one = Override.objects.get()
    assert made_one.label == "S1+o1"
    text = response.content.decode()
    assert "override, not selected by a gate" in text
    assert "It repeats what the policy knows" in text
    bank = load_bank(made.experiment.folder / made_one.path)
    assert bank.bank_sha256 == made_one.bank_sha256
    assert "budget" not in [c.skill_id for c in bank.chunks]
    assert bank.metadata["reason"] == made_one.reason
    build_curriculum(
        bank, round_id="round-000", skill_free_probability=0.2, rho_min=0.2, rho_max=0.9
    )  # a new experiment can train with it
    address = f"/experiments/demo/overrides/{made_one.pk}/"
    twin = operator_client.get(f"{address}?format=json").json()
    assert [c for c in twin["changes"] if c["change"] == "retired"] == [
        {"skill_id": "budget", "change": "retired"}
    ]
    served = operator_client.get(f"{address}bank.json").content
    assert json.loads(served)["metadata"]["override_of"] == made_one.base.bank_sha256
    assert "S1+o1" in operator_client.get("/experiments/demo/skills/1/").content.decode()
    assert AuditEvent.objects.filter(action="skill.override").count() == 1


def test_an_override_leaves_the_versions_of_the_gate_alone(
    made: Made, operator_client: Client
) -> None:
    before = list(SkillVersion.objects.values_list("number", "bank_sha256"))
    own = [key for key, _id, kept in keys(operator_client) if kept]
    operator_client.post(OVERRIDE, {"chunk": own[1:], "reason": "Less"})
    operator_client.post(OVERRIDE, {"chunk": own[2:], "reason": "Less still"})
    assert list(SkillVersion.objects.values_list("number", "bank_sha256")) == before
    assert [o.label for o in Override.objects.all()] == ["S1+o1", "S1+o2"]


def test_an_override_needs_a_reason_and_a_difference(made: Made, operator_client: Client) -> None:
    own = [key for key, _id, kept in keys(operator_client) if kept]
    for data, said in (
        ({"chunk": own[1:], "reason": "  "}, "a reason is needed"),
        ({"chunk": own, "reason": "x"}, "nothing differs"),
    ):
        response = operator_client.post(OVERRIDE, data)
        assert response.status_code == 409
        assert said in response.content.decode()
    assert not Override.objects.exists()


def test_two_texts_of_one_chunk_are_refused(made: Made, operator_client: Client) -> None:
    found = keys(operator_client)
    chosen = [key for key, skill_id, _own in found if skill_id == "open-details"]
    assert len(chosen) == 2  # the text before the rewrite is offered too
    response = operator_client.post(OVERRIDE, {"chunk": chosen, "reason": "x"})
    assert "two texts of one chunk" in response.content.decode()
