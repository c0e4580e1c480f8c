"""Chunks, candidates, cards and remarks as attacks: stored as they can be, shown and never run.

What comes from files goes the way of a real round: bank and pool files are published.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from intraskill_web.core.text import storable, storable_json
from intraskill_web.gates.models import Contribution, GateRun
from intraskill_web.ledger.models import Candidate
from intraskill_web.review.overriding import choices, make_override
from intraskill_web.review.services import Subject, add_event
from intraskill_web.skills.models import SkillVersion
from intraskill_web.skills.publish import publish_bank
from tests.web.factories import Made
from tests.web.html import Page
from tests.web.test_hostile_text import ATTACKS, EVERYTHING
from trainer.files import write_text
from trainer.skills.bank import write_bank
from trainer.skills.types import Chunk

FORMULA = "=HYPERLINK(1)"
SAID = EVERYTHING.replace("\x00", "")


@pytest.fixture
def evil(made: Made, operator: Any) -> Made:
    """A new version of hostile chunks, a hostile candidate, card, title, remark and override."""
    experiment, round_ = made.experiment, made.rounds[0]
    chunks = [
        Chunk("evil", f"# {EVERYTHING}\n{EVERYTHING}", "1\x00", {"estimated_effect": 0.1}),
        Chunk("formula", f"{FORMULA}\n{SAID}", "1", {"estimated_effect": 0.2}),
    ]
    path = experiment.folder / "round-001" / "skillbank.json"
    write_bank(path, chunks, bank_version="1", metadata={"note": EVERYTHING})
    publish_bank(experiment, path, number=9, from_round=round_)
    Candidate.objects.create(
        experiment=experiment,
        round=round_,
        candidate_id="online-evil",
        operation="ADD",
        title=storable(EVERYTHING)[:200],
        content=storable(EVERYTHING),
        status="selected",
        source_card_ids=["failure-evil-01"],
    )
    card = {
        "card_id": "failure-evil-01",
        "source_trajectory_id": EVERYTHING,
        "status": EVERYTHING,
        "eligible_for_consolidation": True,
        "privileged_audit": {EVERYTHING: EVERYTHING},
        "deployable_abstraction": {"failure_mechanism": EVERYTHING, EVERYTHING: EVERYTHING},
        "forced_no_proposal_reasons": [EVERYTHING],
    }
    write_text(round_.folder / "analysis" / "failure_cards.jsonl", json.dumps(card) + "\n")
    gate = GateRun.objects.select_related("round__experiment").get(round=round_)
    Contribution.objects.filter(gate=gate).update(title=storable(EVERYTHING)[:200])
    for subject in (Subject(experiment, gate=gate), Subject(experiment, skill_id="evil")):
        add_event(subject, "comment", SAID, actor=operator)
        add_event(subject, "label", ATTACKS[1], actor=operator)
        add_event(subject, "sign", SAID, actor=operator)
    base = SkillVersion.objects.get(experiment=experiment, number=9)
    make_override(base, [c.key for c in choices(base)][:1], SAID, actor=operator)
    return made


PATHS = [
    "/experiments/demo/",
    "/experiments/demo/internalisation/",
    "/experiments/demo/rounds/0/gate/?twin=1",
    "/experiments/demo/rounds/0/masks/",
    "/experiments/demo/rounds/0/cards/",
    "/experiments/demo/rounds/0/cards/failure-evil-01/",
    "/experiments/demo/skills/9/",
    "/experiments/demo/skills/9/?against=1",
    "/experiments/demo/skills/9/override/",
    "/experiments/demo/overrides/OVERRIDE/",
    "/experiments/demo/chunks/evil/",
    "/ledger/?experiment=demo",
    "/skills/",
    "/admin/review/reviewevent/",
    "/admin/ledger/candidate/",
    "/admin/skills/chunkrevision/",
]


def real(path: str, made: Made) -> str:
    return path.replace("OVERRIDE", str(made.experiment.overrides.get().pk))


@pytest.mark.parametrize("path", PATHS)
def test_no_page_runs_it(evil: Made, admin_client: Client, path: str) -> None:
    response = admin_client.get(real(path, evil))
    assert response.status_code == 200
    page = Page(response.content.decode())
    ours = [] if path.startswith("/admin/") else page.policy_faults()
    assert ours == []
    assert not [e for e in page.elements if e[0] == "img" and "onerror" in e[1]]
    assert not [e for e in page.elements if "onload" in e[1] or "onmouseover" in e[1]]
    assert not [e for e in page.elements if str(e[1].get("href", "")).startswith("javascript:")]
    assert all("alert" not in script for script in page.scripts)


@pytest.mark.parametrize(
    "path", ["/experiments/demo/chunks/evil/", "/experiments/demo/skills/9/", "/ledger/"]
)
def test_the_text_itself_is_shown_word_by_word(
    evil: Made, viewer_client: Client, path: str
) -> None:
    text = Page(viewer_client.get(path).content.decode()).text
    assert storable(EVERYTHING) in text


@pytest.mark.parametrize(
    "path",
    [
        "/experiments/demo/skills/9/?format=csv",
        "/experiments/demo/skills/9/bank.json",
        "/experiments/demo/skills/9/skill.md",
        "/experiments/demo/overrides/OVERRIDE/bank.json",
        "/experiments/demo/rounds/0/cards/?format=csv",
        "/ledger/?experiment=demo&format=csv",
    ],
)
def test_an_export_is_never_a_page(evil: Made, viewer_client: Client, path: str) -> None:
    response = viewer_client.get(real(path, evil))
    assert response.status_code == 200
    assert not response["Content-Type"].startswith("text/html")
    assert "attachment" in response["Content-Disposition"]
    assert response["X-Content-Type-Options"] == "nosniff"


def test_no_cell_of_a_table_is_a_formula(evil: Made, viewer_client: Client) -> None:
    text = viewer_client.get("/experiments/demo/skills/9/?format=csv").content.decode()
    assert f"'{FORMULA}" in text
    assert f",{FORMULA}" not in text


def test_a_twin_holds_the_text_as_data(evil: Made, viewer_client: Client) -> None:
    for path in ("/experiments/demo/chunks/evil/", "/experiments/demo/skills/9/"):
        response = viewer_client.get(f"{path}?format=json")
        assert response["Content-Type"] == "application/json"
        assert storable(EVERYTHING) in json.dumps(response.json(), ensure_ascii=False).replace(
            '\\"', '"'
        )


def test_what_no_database_takes_is_marked_and_hashes_stay_those_of_the_original() -> None:
    assert storable("a\x00b") == "a\ufffdb"
    assert storable_json({"k\x00": ["\x00", 1, None]}) == {"k\ufffd": ["\ufffd", 1, None]}
    assert Chunk("a", "x\x00").content_sha256 != Chunk("a", "x\ufffd").content_sha256
