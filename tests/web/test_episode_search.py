"""Search in what was said: substrings of both languages, exactly, in limited time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from intraskill_web.episodes import bodies, candidates, grams, postings
from intraskill_web.episodes import search as search_module
from intraskill_web.episodes.content import sayings
from intraskill_web.episodes.counting import counted
from intraskill_web.episodes.filters import EpisodeFilter
from intraskill_web.episodes.limits import TooSlow
from intraskill_web.episodes.models import Episode, SavedSearch
from intraskill_web.episodes.order import Key, Order
from intraskill_web.episodes.pieces import cut
from intraskill_web.episodes.prepare import parse, prepare
from intraskill_web.episodes.publish import publish
from intraskill_web.episodes.terms import Terms, expression
from intraskill_web.episodes.words import Words
from intraskill_web.experiments.models import Experiment
from tests.web.traces import make_trace

TEXTS = [
    "想买一个可折叠的泡脚桶，要恒温加热",
    "便携水杯 for the office, colour 浅灰",
    "A waterproof bottle, SKU-0000511",
    "水壶和杯子，不是那个",  # holds 水 and 杯 but not 水杯
    "tea for two: 100% <b>cotton</b> — it's fine",
    "Straße CAFÉ ﬁne",
]


@pytest.fixture
def said(db: None, home: Path) -> list[Episode]:
    """One episode a text, which the policy wrote in its second turn."""
    experiment = Experiment.objects.create(name="said")
    prepared = []
    for number, text in enumerate(TEXTS):
        trace = make_trace(f"e{number}", number, 0, [], instruction="buy", content=text)
        line = json.dumps(trace).encode()
        entry = prepare(line, purpose="bare", arm="bare", groups={})
        entry.values["line"] = number
        prepared.append(entry)
    publish(prepared, {"experiment_id": experiment.pk, "round_id": None, "path": "f"})
    return list(Episode.objects.order_by("pk"))


def found(client: Client, text: str, **more: str) -> list[int]:
    """The task ids that a search finds, in ascending order."""
    answer = client.get("/episodes/", {"q": text, "format": "json", **more})
    assert answer.status_code == 200, answer.content
    return sorted(row["task_id"] for row in answer.json()["results"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("水杯", [1]),  # two characters: what FTS5's trigram silently never finds
        ("泡脚", [0]),
        ("杯", [1, 3]),  # one character is read through
        ("可折叠的泡脚桶", [0]),
        ("水杯 浅灰", [1]),
        ("水杯 泡脚", []),
        ("proof", [2]),
        ("WATERPROOF", [2]),
        ("waterproof bottle", [2]),
        ('"bottle, SKU"', [2]),
        ("bottle,SKU", []),
        ("sku-0000511", [2]),
        ("sku-0000512", []),
        ("0051", [2]),
        ("51", [2]),
        ("<b>cotton", [4]),
        ("100%", [4]),
        ("it's", [4]),
        ("straße", [5]),
        ("café", [5]),
        ("e3", [3]),  # the episode's id
        ("— it", [4]),
    ],
)
def test_words_are_found_wherever_they_stand(
    said: list[Episode], viewer_client: Client, text: str, expected: list[int]
) -> None:
    assert found(viewer_client, text) == expected


def test_a_hit_says_where_and_leads_to_its_turn(said: list[Episode], viewer_client: Client) -> None:
    [row] = viewer_client.get("/episodes/", {"q": "水杯", "format": "json"}).json()["results"]
    hit = row["hit"]
    assert (hit["turn"], hit["role"], hit["match"]) == (2, "agent", "水杯")
    page = viewer_client.get("/episodes/", {"q": "水杯"}).content.decode()
    assert "<mark>水杯</mark>" in page
    assert f"/episodes/{row['id']}/?q=%E6%B0%B4%E6%9D%AF#t2" in page


def test_the_private_goal_and_the_system_prompt_are_not_searched(
    said: list[Episode], viewer_client: Client
) -> None:
    assert found(viewer_client, "price_upper") == []
    assert found(viewer_client, "shop for a person") == []


def test_filters_typed_among_the_words_become_filters(
    said: list[Episode], viewer_client: Client
) -> None:
    answer = viewer_client.get("/episodes/", {"q": "bottle outcome:success task:2"})
    assert answer.status_code == 302
    assert answer["Location"] == "/episodes/?outcome=success&task=2&q=bottle"


def test_an_absent_word_with_frequent_pieces_is_not_counted(
    said: list[Episode], viewer_client: Client
) -> None:
    """All pieces of 水杯 and 杯子 are there, the word itself is not."""
    answer = viewer_client.get("/episodes/", {"q": "水杯子", "format": "json"}).json()
    assert (answer["results"], answer["total"]) == ([], 0)


def test_time_over_is_said_and_the_search_goes_on_from_there(
    said: list[Episode], viewer_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("intraskill_web.episodes.search.SECONDS", -1.0)
    import intraskill_web.episodes.search as module

    monkeypatch.setitem(module.search.__kwdefaults__, "seconds", -1.0)
    seen: list[int] = []
    query: dict[str, Any] = {"q": "buy", "format": "json"}
    for _ in range(len(TEXTS) + 1):
        answer = viewer_client.get("/episodes/", query).json()
        seen += [row["task_id"] for row in answer["results"]]
        if answer["older"] is None:
            break
        query["before"] = answer["older"]
    assert seen == list(range(len(TEXTS)))[::-1]


def test_a_body_beyond_the_limits_stays_findable(
    db: None, home: Path, viewer_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grams, "MAX_TERMS", 20)
    experiment = Experiment.objects.create(name="big")
    line = json.dumps(make_trace("big", 9, 0, [], content="rare-word")).encode()
    entry = prepare(line, purpose="bare", arm="bare", groups={})
    assert grams.TOO_BIG in entry.terms
    entry.values["line"] = 0
    publish([entry], {"experiment_id": experiment.pk, "round_id": None, "path": "f"})
    assert found(viewer_client, "rare-word") == [9]
    assert found(viewer_client, "rare-words") == []


@pytest.mark.parametrize("beyond", [False, True])
def test_a_count_with_a_body_beyond_the_limits_in_it_is_not_certain(
    said: list[Episode], monkeypatch: pytest.MonkeyPatch, beyond: bool
) -> None:
    if beyond:
        monkeypatch.setattr(grams, "MAX_TERMS", 20)
    line = json.dumps(make_trace("big", 9, 0, [], content="nothing of the kind")).encode()
    entry = prepare(line, purpose="bare", arm="bare", groups={})
    entry.values["line"] = 0
    publish([entry], {"experiment_id": said[0].experiment_id, "round_id": None, "path": "g"})
    found = counted(EpisodeFilter({"q": "水杯", "purpose": "bare"}))
    assert (found.count, found.certain) == (1 + beyond, not beyond)
    assert counted(EpisodeFilter({"q": "水杯", "purpose": "test"})).certain


@pytest.mark.parametrize("odd", ['"\\ud800"', "NaN", "[" * 2000 + "]" * 2000, '"steps": 3, "a": 3'])
def test_a_body_that_an_older_version_wrote_is_read_whole_or_passed_over(
    said: list[Episode], viewer_client: Client, odd: str
) -> None:
    trace = make_trace("odd", 8, 0, [], content="水杯")
    body = json.dumps(trace)[:-1] + f', "x": {odd}}}'
    [place] = bodies.append([bodies.compress(body.encode())])
    pack, at, size = place
    Episode.objects.filter(pk=said[1].pk).update(pack=pack, body_at=at, body_size=size)
    readable = "ud800" in odd or odd == "NaN"
    assert found(viewer_client, "水杯") == ([1] if readable else [])


def test_hits_in_bodies_of_all_ages_are_found_alike_on_one_page(
    said: list[Episode], viewer_client: Client, operator_client: Client
) -> None:
    """One frame as older versions wrote it, two, and two of which the line is ready, in turns."""
    ages, wrote = ("one frame", "two", "ready"), {}
    for number in range(12):
        text = f"第{number}个 紫砂水壶" if number % 2 else f"\ud800 紫砂水壶 {number}"
        line = json.dumps(make_trace(f"m{number}", number, 0, [], content=text)).encode()
        entry = prepare(line, purpose="bare", arm="bare", groups={})
        entry.values["line"] = 100 + number
        fields = {"experiment_id": said[0].experiment_id, "round_id": None, "path": "f"}
        publish([entry], fields)
        row = Episode.objects.get(line=100 + number)
        age = ages[number % 3]
        rest, texts = (line, b"") if age == "one frame" else cut(line, sayings(parse(line)))[::-1]
        kept = bodies.compress(rest, texts, ready=age == "ready" and number % 2 == 1)
        [place] = bodies.append([kept])
        Episode.objects.filter(pk=row.pk).update(
            pack=place.pack, body_at=place.at, body_size=place.size
        )
        wrote[row.pk] = text
    rows = viewer_client.get("/episodes/", {"q": "紫砂水壶", "format": "json"}).json()["results"]
    assert [row["id"] for row in rows] == sorted(wrote, reverse=True)
    assert {(r["hit"]["turn"], r["hit"]["role"], r["hit"]["match"]) for r in rows} == {
        (2, "agent", "紫砂水壶")
    }
    html = viewer_client.get("/episodes/", {"q": "紫砂水壶"}).content.decode()
    assert html.count("<mark>紫砂水壶</mark>") == 12
    for pk, text in wrote.items():
        trace = operator_client.get(f"/episodes/{pk}/?format=json").json()["trace"]
        assert trace["steps"][1]["model"]["content"] == text.replace("\ud800", "?")


def test_a_body_whose_texts_are_damaged_is_passed_over(
    said: list[Episode], viewer_client: Client
) -> None:
    assert found(viewer_client, "水杯") == [1]
    pack = bytearray(bodies.pack_file(1).read_bytes())
    at = said[1].body_at + bodies.HEAD.size
    pack[at : at + 12] = bytes(12)
    bodies.pack_file(1).write_bytes(pack)
    assert found(viewer_client, "水杯") == []
    assert found(viewer_client, "SKU-0000511") == [2]


words = st.text(st.sampled_from("ab1290水杯子é-. "), min_size=1, max_size=12)


@given(text=words, start=st.integers(0, 11), length=st.integers(1, 6))
def test_every_substring_of_a_text_has_its_terms_in_it(text: str, start: int, length: int) -> None:
    word = text[start : start + length]
    assert set(grams.required(word)) <= set(grams.terms([text]).split())


@given(text=words, typed=words)
def test_the_index_never_misses_what_reading_finds(text: str, typed: str) -> None:
    asked = Words.of(typed)
    trace = make_trace("e", 1, 0, [], content=text)
    if asked and asked.hit(sayings(trace)):
        terms = grams.terms(saying.text for saying in sayings(trace))
        assert set(asked.terms().text) <= set(terms.split())


def test_searches_are_saved_for_oneself_and_forgotten(
    said: list[Episode], viewer_client: Client, operator_client: Client
) -> None:
    viewer_client.post("/episodes/saved/", {"name": "cups", "query": "q=水杯&x=1&before=3"})
    saved = SavedSearch.objects.get()
    assert saved.query == "q=%E6%B0%B4%E6%9D%AF"
    assert "cups" in viewer_client.get("/episodes/").content.decode()
    assert "cups" not in operator_client.get("/episodes/").content.decode()
    assert operator_client.post(f"/episodes/saved/{saved.pk}/forget/").status_code == 404
    viewer_client.post(f"/episodes/saved/{saved.pk}/forget/")
    assert not SavedSearch.objects.exists()


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_an_export_holds_exactly_the_list(
    said: list[Episode], viewer_client: Client, kind: str
) -> None:
    answer = viewer_client.get(f"/episodes/export.{kind}", {"q": "水 杯"})
    data = b"".join(answer.streaming_content)  # type: ignore[attr-defined]
    if kind == "csv":
        lines = data.decode().splitlines()
        tasks = [line.split(",")[lines[0].split(",").index("task_id")] for line in lines[1:]]
    elif kind == "jsonl":
        tasks = [str(json.loads(line)["task_id"]) for line in data.splitlines()]
    else:
        import io

        import pyarrow.parquet as pq

        tasks = [str(t) for t in pq.read_table(io.BytesIO(data))["task_id"].to_pylist()]
    assert tasks == ["3", "1"]


def test_an_export_of_a_filter_that_is_not_understood_says_so(
    said: list[Episode], viewer_client: Client
) -> None:
    answer = viewer_client.get("/episodes/export.csv", {"step": "three"})
    assert answer.status_code == 400 and b"whole number" in answer.content
    assert viewer_client.get("/episodes/export.xlsx").status_code == 404


def test_a_column_orders_the_list_and_pages_meet_every_episode_once(
    said: list[Episode], viewer_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("intraskill_web.episodes.listing.PAGE", 2)
    for pk, turns in zip([e.pk for e in said], [4, 9, 4, 2, 9, 9], strict=True):
        Episode.objects.filter(pk=pk).update(turns=turns)
    Episode.objects.filter(pk=said[3].pk).update(tokens=None)
    seen: list[int] = []
    query = {"sort": "-turns", "format": "json"}
    while True:
        answer = viewer_client.get("/episodes/", query).json()
        seen += [row["turns"] for row in answer["results"]]
        if answer["older"] is None:
            break
        query["before"] = answer["older"]
    assert seen == [9, 9, 9, 4, 4, 2]
    back = viewer_client.get("/episodes/", query | {"before": "", "after": answer["newer"]}).json()
    assert [row["turns"] for row in back["results"]] == [9, 4]
    by_tokens = viewer_client.get("/episodes/", {"sort": "tokens", "format": "json"}).json()
    assert len(by_tokens["results"]) == 2  # of five with a value


def test_bodies_are_compressed_and_read_back(home: Path) -> None:
    places = bodies.append([bodies.compress(b"a" * 1000), bodies.compress(b"b")])
    assert [bodies.read(place) for place in places] == [b"a" * 1000, b"b"]
    assert places[0].size < 60


def test_the_newest_page_knows_what_is_newer_and_older_pages_do_not_ask(
    said: list[Episode], viewer_client: Client
) -> None:
    newest = said[-1].pk
    assert f'id="newer" role="status" hidden data-after="{newest}"' in (
        viewer_client.get("/episodes/").content.decode()
    )
    for query in ("sort=-turns", f"before={newest}"):
        assert 'id="newer"' not in viewer_client.get(f"/episodes/?{query}").content.decode()
    answer = viewer_client.get(f"/episodes/?after={said[2].pk}&format=json").json()
    assert [row["id"] for row in answer["results"]] == [e.pk for e in said[:2:-1]]


@given(
    entries=st.lists(st.lists(st.sampled_from(["aa", "bb", "cc"]), max_size=3), max_size=40),
    first=st.integers(1, 2 * postings.IDS),
)
def test_inverted_terms_fall_into_the_segments_of_their_ids(
    entries: list[list[str]], first: int
) -> None:
    class Cursor:
        rows: list[tuple[str, int, str]]

        def execute(self, sql: str, parameters: list[Any]) -> None:
            segment, terms, bits = parameters
            self.rows += [(t, segment, b) for t, b in zip(terms, bits, strict=True)]

        @contextmanager
        def copy(self, sql: str) -> Iterator[Any]:
            text = StringIO()
            yield text
            lines = map(str.split, text.getvalue().splitlines())
            self.rows += [(term, int(segment), bits) for term, segment, bits in lines]

    cursor = Cursor()
    cursor.rows = []
    postings.write(cursor, first, postings.invert(map(" ".join, entries)))
    seen = {
        (term, row_id)
        for term, segment, bits in cursor.rows
        for row_id in postings.ids_of(segment, int(bits[1:], 16), back=True)
    }
    expected = {(term, first + n) for n, terms in enumerate(entries) for term in terms}
    assert seen == expected


@pytest.mark.parametrize("back", [False, True])
def test_candidates_come_in_order_across_segments_and_beyond_their_first_window(
    said: list[Episode], back: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("FTS5 keeps its own lists")
    monkeypatch.setattr(postings, "FIRST_WINDOW", 1)
    spread = [3, postings.IDS + 4, 3 * postings.IDS, 9 * postings.IDS + 1]
    Episode.objects.filter(pk=said[0].pk).update(id=spread[-1] + 1)
    with connection.cursor() as cursor:
        for row_id in spread:
            postings.write(cursor, row_id, {"qq": 1, "ww": 1})
        postings.write(cursor, spread[1] + 1, {"qq": 1})  # merged into a segment that is there
    asked = Terms(text=("qq", "ww"))
    order = spread if back else spread[::-1]
    assert list(postings.ids(asked, None, back=back)) == order
    assert list(postings.ids(asked, order[1], back=back)) == order[2:]
    assert list(postings.ids(Terms(text=("qq",), marks=("ww",)), None, back=back)) == order
    assert list(postings.ids(Terms(marks=("ww", "xx")), None, back=back)) == []


@pytest.mark.parametrize("range_", ["0.2..0.9", "0.95..0.96"])
def test_a_range_finds_the_same_whether_it_is_walked_or_sorted(
    said: list[Episode], viewer_client: Client, range_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pk, reward in zip([e.pk for e in said], [0.1, 0.3, 0.5, 0.8, 0.95, 1.0], strict=True):
        Episode.objects.filter(pk=pk).update(reward=reward)
    low, high = map(float, range_.split(".."))
    query = {"reward": range_, "turns": "0..99", "format": "json"}
    for seconds in (9.0, -1.0):
        monkeypatch.setattr("intraskill_web.episodes.candidates.WALK_SECONDS", seconds)
        monkeypatch.setattr("intraskill_web.episodes.limits.OPERATIONS", 1)
        rows = viewer_client.get("/episodes/", query).json()["results"]
        assert [row["reward"] for row in rows] == [
            reward for reward in (1.0, 0.95, 0.8, 0.5, 0.3, 0.1) if low <= reward <= high
        ]


def test_what_matches_is_counted_exactly_up_to_the_limit(said: list[Episode]) -> None:
    shop = EpisodeFilter({"q": "buy"})  # the task of all six
    gone = said[2].pk
    Episode.objects.filter(pk=gone).delete()  # its terms may stay in the index
    Episode.objects.filter(pk=said[0].pk).update(purpose="test")
    assert [candidates.count(shop, most, seconds=9) for most in (3, 4, 5, 6)] == [4, 5, 5, 5]
    bare = EpisodeFilter({"q": "buy", "purpose": "bare"})
    assert candidates.count(bare, 9, seconds=9) == 4
    assert candidates.count(EpisodeFilter({"purpose": "test"}), 9, seconds=9) == 1
    assert candidates.count(EpisodeFilter({"q": "水杯", "purpose": "test"}), 9, seconds=9) == 0


def test_counting_frequent_words_reads_the_newest_of_the_index_only(
    said: list[Episode], monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("FTS5 reads as far as it is asked to")
    monkeypatch.setattr(postings, "FIRST_WINDOW", 1)
    far = (said[-1].pk // postings.IDS + 9) * postings.IDS  # three are in a segment far from others
    for n, episode in enumerate(said[:3]):
        Episode.objects.filter(pk=episode.pk).update(id=far + n)
    with connection.cursor() as cursor:
        postings.write(cursor, far, {"buy": 0b111})
    words = EpisodeFilter({"q": "buy"})
    with django_assert_num_queries(3):  # the newest id, one window, its rows
        assert candidates.count(words, 2, seconds=9) == 3
    assert candidates.count(words, 9, seconds=9) == 6
    with pytest.raises(TooSlow):
        candidates.count(words, 2, seconds=-1)


@pytest.mark.parametrize("back", [False, True])
def test_the_index_is_read_from_the_newest_and_nothing_is_sorted(db: None, back: bool) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL is asked for ids first")
    found = Episode.objects.filter(search__terms__has_terms=expression(Terms(text=("水杯",))))
    sql, parameters = Order().rows(found, Key(9), back=back)[:50].query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)
        plan = [row[3] for row in cursor.fetchall()]
    assert plan[0].startswith("SCAN episodes_search") and not [p for p in plan if "B-TREE" in p]


@pytest.fixture
def ranked(said: list[Episode]) -> list[Episode]:
    """All hold "buy"; by turns the ids are in another order, and one has no tokens."""
    for pk, turns in zip([e.pk for e in said], [4, 9, 4, 2, 9, 7], strict=True):
        Episode.objects.filter(pk=pk).update(turns=turns, tokens=turns)
    Episode.objects.filter(pk=said[3].pk).update(tokens=None)
    return said


@pytest.mark.parametrize(
    ("sort", "expected"),
    [("-turns", [9, 9, 7, 4, 4, 2]), ("turns", [2, 4, 4, 7, 9, 9]), ("-tokens", [9, 9, 7, 4, 4])],
)
def test_hits_are_sorted_by_a_column_on_every_page_and_in_the_export(
    ranked: list[Episode],
    viewer_client: Client,
    sort: str,
    expected: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("intraskill_web.episodes.listing.PAGE", 2)
    monkeypatch.setattr("intraskill_web.episodes.export.PIECE", 2)
    query = {"q": "buy", "sort": sort, "format": "json"}
    seen: list[int] = []
    while True:
        answer = viewer_client.get("/episodes/", query).json()
        assert (answer["sort"], answer["unsorted"]) == (sort, "")
        seen += [row["turns"] for row in answer["results"]]
        if answer["older"] is None:
            break
        query["before"] = answer["older"]
    assert seen == expected
    export = viewer_client.get("/episodes/export.jsonl", {"q": "buy", "sort": sort})
    lines = b"".join(export.streaming_content).splitlines()  # type: ignore[attr-defined]
    assert [json.loads(line)["turns"] for line in lines] == expected
    page = viewer_client.get("/episodes/", {"q": "buy", "sort": sort}).content.decode()
    assert f'aria-sort="{"descending" if sort[0] == "-" else "ascending"}"' in page
    opened = f"/episodes/{ranked[5].pk}/?q=buy&sort={sort}"
    page = viewer_client.get(opened).content.decode()
    for beside in (ranked[1], ranked[2]):
        assert f'href="/episodes/{beside.pk}/?q=buy&amp;sort={sort}"' in page


def test_hits_that_cannot_be_sorted_in_time_are_newest_first_and_say_so(
    ranked: list[Episode], viewer_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("intraskill_web.episodes.listing.PAGE", 4)
    real = search_module.take

    def slow(filter_: EpisodeFilter, rows: Any, order: Order, *args: Any, **more: Any) -> list[Any]:
        if order.column:
            raise TooSlow
        return real(filter_, rows, order, *args, **more)

    monkeypatch.setattr(search_module, "take", slow)
    query = {"q": "buy", "sort": "-turns", "format": "json"}
    answer = viewer_client.get("/episodes/", query).json()
    newest = [e.pk for e in reversed(ranked)]
    assert [row["id"] for row in answer["results"]] == newest[:4]
    assert answer["sort"] == "" and "sort them by turns" in answer["unsorted"]
    answer = viewer_client.get("/episodes/", query | {"before": answer["older"]}).json()
    assert [row["id"] for row in answer["results"]] == newest[4:]
    assert "sort them by turns" in answer["unsorted"]
    page = viewer_client.get("/episodes/", {"q": "buy", "sort": "-turns"}).content.decode()
    assert "Too many hits to sort them by turns in time" in page and "aria-sort" not in page


def test_frequent_words_are_sorted_by_walking_along_the_column(
    ranked: list[Episode], viewer_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("intraskill_web.episodes.listing.PAGE", 2)
    real, walked = search_module.take, []

    def slow(filter_: EpisodeFilter, rows: Any, order: Order, *args: Any, **more: Any) -> list[Any]:
        if order.column and "q" in filter_.values:
            raise TooSlow  # to sort all candidates
        walked.append(filter_.values)
        return real(filter_, rows, order, *args, **more)

    monkeypatch.setattr(search_module, "take", slow)
    query = {"q": "buy", "sort": "-turns", "purpose": "bare", "format": "json"}
    seen: list[int] = []
    while True:
        answer = viewer_client.get("/episodes/", query).json()
        assert (answer["sort"], answer["unsorted"]) == ("-turns", "")
        seen += [row["turns"] for row in answer["results"]]
        if answer["older"] is None:
            break
        query["before"] = answer["older"]
    assert seen == [9, 9, 7, 4, 4, 2]
    assert walked and all(values == {"purpose": "bare"} for values in walked)
    few = viewer_client.get("/episodes/", query | {"q": "水杯", "before": ""}).json()
    assert [row["id"] for row in few["results"]] == [ranked[1].pk]
    marked = viewer_client.get("/episodes/", query | {"persona": "brand=tarn", "before": ""}).json()
    assert "sort them by turns" in marked["unsorted"]  # the index alone knows the persona
