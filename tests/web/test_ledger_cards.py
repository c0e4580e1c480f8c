"""Failure cards: the deployable side for everybody, the privileged one only for who may see it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from intraskill_web.core.models import AuditEvent
from intraskill_web.ledger.models import Candidate
from tests.web.factories import Made
from tests.web.html import Page
from trainer.files import write_text

LIST = "/experiments/demo/rounds/0/cards/"
CARD = f"{LIST}failure-group-3-retry-01/"
SECRET = "The wanted product is B00SECRET <script>alert(1)</script>"
MECHANISM = "The query misses the brand {{ 7|add:7 }}"


@pytest.fixture
def carded(made: Made) -> Made:
    """Two cards; of the first source two lines, of which the last counts."""
    rows: list[dict[str, Any]] = [
        {
            "card_id": "failure-group-3-retry-01",
            "source_trajectory_id": "group-3-retry",
            "status": status,
            "eligible_for_consolidation": status != "NO_PROPOSAL",
            "privileged_audit": {"gold_asin": "B00SECRET", "oracle_comparison": SECRET},
            "deployable_abstraction": {"failure_mechanism": MECHANISM},
            "audit_transcript": [{"role": "user", "content": SECRET}],
            "terminal_trials": [{"actions": [SECRET]}],
            "forced_no_proposal_reasons": ["gold_firewall_violation"],
        }
        for status in ("PROPOSE_ADD", "NO_PROPOSAL")
    ]
    rows.append(
        {
            "source_trajectory_id": "group-4-retry",
            "status": "ANALYST_ERROR",
            "eligible_for_consolidation": False,
            "error": {"type": "Timeout", "message": "no answer"},
        }
    )
    path = made.rounds[0].folder / "analysis" / "failure_cards.jsonl"
    write_text(path, "".join(json.dumps(row) + "\n" for row in rows))
    Candidate.objects.create(
        experiment=made.experiment,
        round=made.rounds[0],
        candidate_id="online-1",
        operation="ADD",
        content="x",
        source_card_ids=["failure-group-3-retry-01"],
    )
    return made


def test_the_list_shows_the_deployable_side_only(carded: Made, admin_client: Client) -> None:
    html = admin_client.get(LIST).content.decode()
    assert MECHANISM in Page(html).text
    assert "B00SECRET" not in html
    assert "online-1" in html
    twin = admin_client.get(f"{LIST}?format=json").json()
    assert [c["status"] for c in twin["cards"]] == ["NO_PROPOSAL", "ANALYST_ERROR"]
    assert "B00SECRET" not in admin_client.get(f"{LIST}?format=csv").content.decode()


def test_viewers_and_operators_do_not_see_the_privileged_part(
    carded: Made, viewer_client: Client, operator_client: Client
) -> None:
    for client in (viewer_client, operator_client):
        html = client.get(CARD).content.decode()
        assert "B00SECRET" not in html and "You need the permission" in html
        for query in ("?format=json", "?format=json&privileged=1"):
            assert b"B00SECRET" not in client.get(CARD + query).content
    assert not AuditEvent.objects.filter(action="card.privileged").exists()


def test_who_may_sees_it_marked_and_on_record(
    carded: Made, viewer: Any, viewer_client: Client
) -> None:
    viewer.user_permissions.add(Permission.objects.get(codename="see_privileged"))
    html = viewer_client.get(CARD).content.decode()
    page = Page(html)
    assert SECRET in page.text and "knows the private goal" in page.text
    assert page.policy_faults() == []
    assert AuditEvent.objects.filter(action="card.privileged", actor=viewer).count() == 1


def test_an_export_has_it_only_when_asked_for(carded: Made, admin_client: Client) -> None:
    plain = admin_client.get(f"{CARD}?format=json").json()
    assert "privileged_audit" not in plain and "audit_transcript" not in plain
    whole = admin_client.get(f"{CARD}?format=json&privileged=1").json()
    assert whole["privileged_audit"]["gold_asin"] == "B00SECRET"


def test_the_ledger_leads_to_the_cards(carded: Made, viewer_client: Client) -> None:
    links = Page(viewer_client.get("/ledger/?experiment=demo").content.decode()).links
    assert (CARD, "failure-group-3-retry-01") in links


def test_cards_that_are_not_here_are_said_to_be_absent(made: Made, viewer_client: Client) -> None:
    text = viewer_client.get("/experiments/demo/rounds/1/cards/").content.decode()
    assert "The cards of this round are not here." in text
    assert viewer_client.get("/experiments/demo/rounds/1/cards/x/").status_code == 404


def test_the_list_says_what_brought_its_cards(carded: Made, viewer_client: Client) -> None:
    path = carded.rounds[0].folder / "analysis" / "failure_cards.jsonl"
    triggers = ["low_mean", "all_wrong", "low_mean"]
    rows = [
        {"source_trajectory_id": f"s-{i}", "status": "NO_PROPOSAL", "trigger": trigger}
        for i, trigger in enumerate(triggers)
    ]
    write_text(path, "".join(json.dumps(row) + "\n" for row in rows))
    text = " ".join(Page(viewer_client.get(LIST).content.decode()).text.split())
    assert "Analysed because: retry failed too 1, rarely succeeded 2" in text
    twin = viewer_client.get(f"{LIST}?format=json").json()
    assert twin["triggers"] == {"all_wrong": 1, "low_mean": 2}
    assert [card["trigger"] for card in twin["cards"]] == triggers
