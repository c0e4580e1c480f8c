"""The episode list: its whole state is the URL, what is not understood is said, pages go by key."""

from __future__ import annotations

from typing import Any

import pytest
from django.template.loader import render_to_string
from django.test import Client

from intraskill_web.episodes import list_page
from intraskill_web.episodes.counting import Counted
from intraskill_web.episodes.list_data import LIST_FIELDS
from intraskill_web.episodes.listing import PAGE
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.parameters import PARAMETERS
from tests.web.factories import Made


def results(client: Client, query: str) -> dict:  # type: ignore[type-arg]
    answer = client.get(f"/episodes/?{query}&facets=1&format=json")
    assert answer.status_code == 200, answer.content
    return answer.json()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("query", "conditions"),
    [
        ("experiment=demo&round=0", {"round__number": 0}),
        ("purpose=train&step=3", {"purpose": "train", "step": 3}),
        ("purpose=retry&outcome=success", {"purpose": "retry", "success": True}),
        ("treatment=skill_free", {"treatment_mode": "skill_free"}),
        ("admitted=yes", {"admitted": True}),
        ("group=5", {"group_index": 5}),
        ("reward=1", {"reward": 1.0}),
        ("reward=0.5..", {"reward__gte": 0.5}),
        ("reward=..0.5&purpose=bare", {"reward__lte": 0.5, "purpose": "bare"}),
        ("errors=1", {"protocol_errors__gte": 1}),
        ("turns=4..6", {"turns__gte": 4, "turns__lte": 6}),
        ("split=val&task=7", {"split": "val", "task_id": 7}),
        ("q=BOTTLE", {"instruction__icontains": "bottle"}),
    ],
)
def test_each_filter_finds_exactly_its_episodes(
    made: Made, viewer_client: Client, query: str, conditions: dict[str, object]
) -> None:
    expected = Episode.objects.filter(**conditions).count()
    assert expected > 0
    assert results(viewer_client, query)["total"] == expected


def test_with_and_without_a_chunk_share_out_the_episodes(made: Made, viewer_client: Client) -> None:
    whole = results(viewer_client, "purpose=masked")["total"]
    shown = sum("budget" in e.skill_ids for e in Episode.objects.filter(purpose="masked"))
    assert results(viewer_client, "purpose=masked&chunk=budget")["total"] == shown
    assert results(viewer_client, "purpose=masked&without=budget")["total"] == whole - shown


def test_a_chunk_id_is_matched_whole(made: Made, viewer_client: Client) -> None:
    assert results(viewer_client, "chunk=budge")["total"] == 0
    assert results(viewer_client, "chunk=%25")["total"] == 0


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("step=three", "three is not a whole number"),
        ("purpose=none", "none is not one of train, retry"),
        ("reward=high", "high is not a range"),
        ("chunk=a%22b", "is not a chunk id"),
        ("outcome=maybe", "maybe is not one of"),
    ],
)
def test_what_is_not_understood_is_said_and_lists_nothing(
    made: Made, viewer_client: Client, query: str, words: str
) -> None:
    answer = viewer_client.get(f"/episodes/?{query}&format=json")
    assert answer.status_code == 400
    assert words in answer.json()["errors"][0]
    assert answer.json()["results"] == []
    assert words in viewer_client.get(f"/episodes/?{query}").content.decode().replace("&quot;", '"')


def test_counting_is_left_out_until_it_is_asked_for(made: Made, viewer_client: Client) -> None:
    answer = viewer_client.get("/episodes/?purpose=train&format=json").json()
    assert len(answer["results"]) == PAGE
    assert (answer["total"], answer["facets"]) == (None, None)
    asked = results(viewer_client, "purpose=train")
    train = Episode.objects.filter(purpose="train")
    assert asked["total"] == train.count() > PAGE
    assert asked["facets"]["outcome"]["success"] == train.filter(success=True).count()
    assert asked["facets"]["admitted"]["yes"] == train.filter(admitted=True).count()


def test_a_list_on_one_page_is_counted_without_asking(made: Made, viewer_client: Client) -> None:
    answer = viewer_client.get("/episodes/?purpose=train&group=5&format=json").json()
    assert answer["total"] == len(answer["results"]) > 0
    assert sum(answer["facets"]["outcome"].values()) == answer["total"]
    page = viewer_client.get("/episodes/?purpose=train&group=5").content.decode()
    assert "part=facets" not in page and f'id="count">{answer["total"]}' in page


def test_the_page_asks_for_its_counts_after_its_rows_and_offers_them_without_scripts(
    made: Made, viewer_client: Client
) -> None:
    count = Episode.objects.filter(purpose="train").count()
    page = viewer_client.get("/episodes/?purpose=train").content.decode()
    assert 'hx-get="/episodes/?purpose=train&amp;part=facets" hx-trigger="load"' in page
    assert '<noscript><a href="?purpose=train&amp;facets=1">' in page
    later = viewer_client.get("/episodes/?purpose=train&part=facets").content.decode()
    assert f'hx-swap-oob="true">{count}' in later and "<html" not in later
    assert 'href="?purpose=train&amp;outcome=success"' in later
    inline = viewer_client.get("/episodes/?purpose=train&facets=1").content.decode()
    assert f'id="count">{count}' in inline and "part=facets" not in inline
    assert 'href="?purpose=train&amp;outcome=success"' in inline


def test_paging_meets_every_episode_once_forwards_and_back(
    made: Made, viewer_client: Client
) -> None:
    query = "purpose=train&round=0"
    seen: list[int] = []
    page = results(viewer_client, query)
    while True:
        seen += [row["id"] for row in page["results"]]
        if page["older"] is None:
            break
        page = results(viewer_client, f"{query}&before={page['older']}")
    expected = list(
        Episode.objects.filter(purpose="train", round__number=0)
        .order_by("-pk")
        .values_list("pk", flat=True)
    )
    assert seen == expected
    back = results(viewer_client, f"{query}&after={seen[PAGE]}")
    assert [row["id"] for row in back["results"]] == seen[:PAGE]
    assert back["newer"] is None


def test_every_filter_becomes_a_chip_that_can_be_removed(made: Made, viewer_client: Client) -> None:
    text = viewer_client.get("/episodes/?experiment=demo&step=3&outcome=success").content.decode()
    assert "Remove the filter step" in text
    assert 'href="?experiment=demo&amp;outcome=success"' in text


def test_an_empty_result_names_the_filter_that_costs_most(
    made: Made, viewer_client: Client
) -> None:
    text = viewer_client.get("/episodes/?purpose=train&step=3&task=999999").content.decode()
    assert "No episode matches" in text
    assert "Without “task 999999” there would be" in text


def test_a_count_that_stops_at_its_limit_says_more_than(
    made: Made, viewer_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_page, "COUNT_LIMIT", 2)
    text = viewer_client.get("/episodes/?purpose=train&task=999999").content.decode()
    assert "Without “task 999999” there would be more than 2." in text


def test_a_count_that_the_index_cannot_vouch_for_is_none() -> None:
    for certain, told in ((True, "more than 2"), (False, "not counted")):
        counted = Counted(2, capped=True, facets={}, certain=certain)
        assert render_to_string("episodes/_count.html", {"counted": counted}).strip() == told


def test_neighbours_follow_the_list_one_came_from(made: Made, viewer_client: Client) -> None:
    query = "experiment=demo&purpose=retry"
    ids = [row["id"] for row in results(viewer_client, query)["results"]]
    text = viewer_client.get(f"/episodes/{ids[1]}/?{query}").content.decode()
    assert f"/episodes/{ids[0]}/?experiment=demo&amp;purpose=retry" in text
    assert f"/episodes/{ids[2]}/?experiment=demo&amp;purpose=retry" in text
    assert f"2 of {len(ids)}" in text


def test_parameters_have_names_and_their_words_are_known() -> None:
    for parameter in PARAMETERS.values():
        assert str(parameter.name)
        for value in parameter.words or {}:
            parameter.parse(value)


def test_rows_of_the_list_are_those_of_the_database_in_their_kinds(
    made: Made, viewer_client: Client
) -> None:
    shown = {
        row["id"]: row for row in viewer_client.get("/episodes/?format=json").json()["results"]
    }
    assert len(shown) > 10
    seen: dict[str, set[type]] = {}
    for episode in Episode.objects.select_related("experiment", "round").filter(pk__in=shown):
        row = shown[episode.pk]
        alone = viewer_client.get(f"/episodes/{episode.pk}/?format=json").json()
        for name in LIST_FIELDS:
            assert row[name] == alone[name] == getattr(episode, name)
            assert type(row[name]) is type(alone[name]) is type(getattr(episode, name)), name
            seen.setdefault(name, set()).add(type(row[name]))
        assert row["experiment"] == alone["experiment"] == episode.experiment.name
        assert row["round"] == alone["round"] == (episode.round.number if episode.round else None)
        assert row["url"] == alone["url"] == f"/episodes/{episode.pk}/"
    assert bool in seen["success"] and bool in seen["scored"] and list in seen["skill_ids"]


def test_lists_and_episodes_as_data_ask_for_session_and_rows(
    made: Made, viewer_client: Client, django_assert_num_queries: Any
) -> None:
    pk = Episode.objects.latest("pk").pk
    for address in ("/episodes/?", f"/episodes/{pk}/?"):
        viewer_client.get(f"{address}format=json")
        with django_assert_num_queries(2):
            assert viewer_client.get(f"{address}format=json").status_code == 200


def test_an_episode_that_never_was_is_not_found(made: Made, viewer_client: Client) -> None:
    for pk in (0, 2**31, 2**63 - 1, 2**63, 10**30):
        assert viewer_client.get(f"/episodes/{pk}/?format=json").status_code == 404


@pytest.mark.parametrize("name", ["before", "after"])
@pytest.mark.parametrize("text", ["zz", "-1", "1~", "~5", "²"])
def test_a_place_that_is_none_is_refused_and_never_the_first_page(
    made: Made, viewer_client: Client, name: str, text: str
) -> None:
    answer = viewer_client.get("/episodes/", {name: text, "format": "json"})
    assert answer.status_code == 400 and answer.json()["results"] == []
    assert f"{name}: {text} is no place in a list" in answer.json()["error"]
    page = viewer_client.get("/episodes/", {name: text}).content.decode()
    assert "is no place in a list" in page and "data-episode" not in page


@pytest.mark.parametrize(
    "path", ["tokens/?start=x", "tokens/?start=-1", "?turn=x", f"?turn={'9' * 30}"]
)
def test_a_place_in_an_episode_that_is_no_number_is_refused(
    made: Made, viewer_client: Client, path: str
) -> None:
    address = f"/episodes/{Episode.objects.order_by('pk')[0].pk}/{path}"
    answer = viewer_client.get(address)
    assert answer.status_code == 400 and "is not a whole number" in answer.content.decode()
    if "tokens" in path:
        answer = viewer_client.get(address, headers={"Accept": "application/json"})
        assert answer.status_code == 400 and "is not a whole number" in answer.json()["error"]


@pytest.mark.parametrize(
    "path", ["export.csv?step=three", "export.jsonl?sort=size", "?format=csv&step=three",
             "behaviour/?format=csv&step=three"],
)  # fmt: skip
def test_a_file_of_a_list_that_is_not_understood_is_refused_in_its_words(
    made: Made, viewer_client: Client, path: str
) -> None:
    words = "size is not one of" if "sort" in path else "three is not a whole number"
    answer = viewer_client.get(f"/episodes/{path}")
    assert answer.status_code == 400 and words in answer.content.decode()
    assert answer["Content-Type"].startswith("text/plain")
    if "export" in path:
        answer = viewer_client.get(f"/episodes/{path}", headers={"Accept": "application/json"})
        assert answer.status_code == 400 and words in answer.json()["error"]
