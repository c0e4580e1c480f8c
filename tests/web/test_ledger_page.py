"""The proposal ledger: one row a candidate with its chain, a funnel whose counts filter."""

from __future__ import annotations

import pytest
from django.test import Client

from intraskill_web.experiments.models import Stage
from intraskill_web.ledger.models import Candidate
from intraskill_web.ledger.near import nearest
from tests.web.factories import Made
from tests.web.html import Page
from tests.web.test_hostile_text import ATTACKS, assert_inert

TEXT = "Read the whole details page before buying, and compare the material with the request."


@pytest.fixture
def ledger(made: Made) -> Made:
    rows = (
        ("online-a", 0, "ADD", "", "selected", 0.04, TEXT),
        ("online-b", 0, "REWRITE", "size", "non_positive", -0.01, "尺寸核对：先看详情页再下单"),
        ("online-c", 1, "ADD", "", "pooled", None, TEXT.replace("whole", "entire")),
    )
    for name, number, operation, target, status, effect, content in rows:
        Candidate.objects.create(
            experiment=made.experiment,
            round=made.rounds[number],
            candidate_id=name,
            operation=operation,
            target_chunk_id=target,
            title=f"title of {name}",
            content=content,
            status=status,
            effect=effect,
            rank=1 if effect else None,
            source_card_ids=["card-1", "card-2"],
        )
    Stage.objects.filter(round=made.rounds[0], kind="analyse").update(
        outcome={"analyzed_cards": 9, "eligible_cards": 4}
    )
    return made


def found(client: Client, query: str) -> list[str]:
    data = client.get(f"/ledger/?{query}&format=json").json()
    return sorted(row["candidate_id"] for row in data["candidates"])


def test_every_count_of_the_funnel_filters_to_that_many_rows(
    ledger: Made, viewer_client: Client
) -> None:
    data = viewer_client.get("/ledger/?experiment=demo&format=json").json()
    assert data["funnels"] == [
        {"experiment": "demo", "round": 0, "cards": 9, "eligible": 4,
         "compiled": 2, "judged": 2, "selected": 1},
        {"experiment": "demo", "round": 1, "cards": None, "eligible": None,
         "compiled": 1, "judged": 0, "selected": 0},
    ]  # fmt: skip
    for funnel in data["funnels"]:
        for reached in ("compiled", "judged", "selected"):
            query = f"experiment=demo&round={funnel['round']}&reached={reached}"
            assert len(found(viewer_client, query)) == funnel[reached]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("q=material", ["online-a", "online-c"]),
        ("q=核对", ["online-b"]),
        ("q=material+entire", ["online-c"]),
        ("q=size", ["online-b"]),
        ("operation=REWRITE", ["online-b"]),
        ("round=1", ["online-c"]),
        ("round=7", []),
    ],
)
def test_filters_find_by_text_and_by_place(
    ledger: Made, viewer_client: Client, query: str, names: list[str]
) -> None:
    assert found(viewer_client, query) == names


def test_a_row_shows_its_whole_chain(ledger: Made, viewer_client: Client) -> None:
    html = viewer_client.get("/ledger/?q=online-a").content.decode()
    text = Page(html).text
    assert "2 cards" in text
    assert "card-1" in text
    assert "near duplicate" in text
    assert "/experiments/demo/rounds/0/gate/" in html
    assert "/experiments/demo/skills/1/" in html


def test_near_duplicates_are_symmetric_and_need_likeness() -> None:
    made = nearest({1: TEXT, 2: TEXT.replace("whole", "entire"), 3: "something else", 4: ""})
    assert made[1][0] == 2
    assert made[2][0] == 1
    assert set(made) == {1, 2}
    assert nearest({1: TEXT, 2: TEXT})[1][1] == 1.0


def test_hostile_candidates_are_inert(ledger: Made, viewer_client: Client) -> None:
    everything = " ".join(a for a in ATTACKS if "\x00" not in a)
    Candidate.objects.update(
        title=everything[:200], content=everything, target_chunk_id=everything[:120],
        source_card_ids=[everything],
    )  # fmt: skip
    assert_inert(viewer_client.get("/ledger/").content.decode())
    csv = viewer_client.get("/ledger/?format=csv")
    assert csv.status_code == 200
    assert viewer_client.get("/ledger/", {"q": everything}).status_code == 200


def test_an_empty_ledger_says_where_candidates_come_from(db: None, viewer_client: Client) -> None:
    assert "compiles candidates" in viewer_client.get("/ledger/").content.decode()
