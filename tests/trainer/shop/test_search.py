"""Normaliser, tokens and ranking (environment.md §3)."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import pytest

from tests.trainer.shop.factories import product, world
from trainer.errors import InputError
from trainer.shop.catalogue import Catalogue, document_of
from trainer.shop.profiles import COMPAT, PUBLISHED_WEIGHTS, STANDARD
from trainer.shop.records import RecordReader
from trainer.shop.search import SearchIndex
from trainer.shop.search_index import IndexBuilder
from trainer.shop.synthetic import SyntheticSettings, generate_records
from trainer.shop.tokens import models, normalise, subtokens, tokenise


def test_the_normaliser_has_the_specified_value() -> None:
    assert normalise("  迷你，冰箱 100 CNY ") == "迷你 冰箱 100元"
    assert normalise("50块钱 人民币|RMB") == "50元 元 rmb"


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("小冰箱", ("小冰", "冰箱")),
        ("ＵＳＢ－Ｃ 数据线1.5M", ("数据", "据线", "usb-c", "1.5m")),
        ("猫", ("猫",)),
        ("，。！", ()),
        ("红 red 红", ("红", "red")),
    ],
)
def test_tokens_have_the_specified_values(text: str, tokens: tuple[str, ...]) -> None:
    assert tokenise(text) == tokens


def test_models_hold_a_letter_and_a_digit() -> None:
    assert models("小米 XK-200 手机 5g 128 pro xk-200") == ("xk-200", "5g")


def test_latin_tokens_are_split_again_at_inner_signs() -> None:
    assert subtokens("usb-c") == ("usb", "c")
    assert subtokens("冰箱") == ("冰箱",)


def index_of(*titles: str) -> SearchIndex:
    products = [
        product(f"{n:012d}", {}, title=title, brand="x") for n, title in enumerate(titles, 1)
    ]
    return Catalogue.from_products(products, COMPAT, source="test").index


def test_the_best_product_comes_first_and_the_order_is_stable() -> None:
    index = index_of("宿舍迷你冰箱", "家用大冰箱", "宿舍台灯")
    found = [asin for asin, _ in index.search("宿舍 冰箱")]
    assert found[0] == "000000000001"
    assert found == [asin for asin, _ in index.search("宿舍 冰箱")]
    assert len(found) == 3


def test_equal_scores_are_ordered_by_product_id() -> None:
    index = index_of(*["冰箱"] * 5, "台灯")
    assert [asin[-1] for asin, _ in index.search("冰箱")] == ["1", "2", "3", "4", "5"]


def test_no_tokens_and_no_limit_find_nothing() -> None:
    index = index_of("冰箱")
    assert index.search("，。") == []
    assert index.search("冰箱", 0) == []
    assert index_of().search("冰箱") == []


def test_weights_belong_to_their_columns() -> None:
    weights = {**PUBLISHED_WEIGHTS, "title": 10.0}
    builder = IndexBuilder(weights)
    builder.add("000000000002", (("名牌",), (), (), (), (), (), ()))
    builder.add("000000000001", ((), ("名牌",), (), (), (), (), ()))
    builder.add("000000000003", (("别的",), (), (), (), (), (), ()))
    assert [asin for asin, _ in SearchIndex(builder.build()).search("名牌")] == [
        "000000000002",
        "000000000001",
    ]


def test_weights_in_another_order_are_refused() -> None:
    with pytest.raises(InputError, match="in order"):
        IndexBuilder(dict(reversed(PUBLISHED_WEIGHTS.items())))


def test_a_phrase_stays_within_a_column() -> None:
    builder = IndexBuilder(PUBLISHED_WEIGHTS)
    builder.add("1", (("usb",), ("c",), (), (), (), (), ()))
    builder.add("2", (("usb", "c"), (), (), (), (), (), ()))
    builder.add("3", (("c", "usb"), (), (), (), (), (), ()))
    assert [asin for asin, _ in SearchIndex(builder.build()).search("usb-c")] == ["2"]


def test_tasks_prices_and_images_are_never_indexed() -> None:
    record = next(iter(generate_records(SyntheticSettings(products=1))))
    record["instructions"][0]["instruction"] = "独一无二的愿望"
    record["images"] = ["https://shop.invalid/geheim.jpg"]
    record["pricing"] = [987654]
    ((_, document),) = RecordReader(STANDARD).read([record])
    words = {token for column in document for token in column}
    assert words.isdisjoint({*tokenise("独一无二的愿望"), "geheim.jpg", "987654"})


def test_options_are_found_as_the_source_writes_them() -> None:
    listed = product(axes={"尺码": {"m | l": 1}})
    assert "m" in document_of(listed)[5]


# --- the whole catalogue against SQLite


def fts5(documents: Sequence[tuple[str, Sequence[Sequence[str]]]]) -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.execute(
        "CREATE VIRTUAL TABLE d USING fts5(asin UNINDEXED, title, brand, category, model,"
        " attributes, options, bullets, tokenize='unicode61 remove_diacritics 2')"
    )
    database.executemany(
        "INSERT INTO d VALUES (?,?,?,?,?,?,?,?)",
        ((asin, *(" ".join(column) for column in columns)) for asin, columns in documents),
    )
    return database


def reference(database: sqlite3.Connection, query: str) -> list[tuple[str, float]]:
    quoted = " OR ".join(f'"{token}"' for token in tokenise(query))
    return database.execute(
        "SELECT asin, -bm25(d, 0.0, 3.0, 2.0, 2.0, 2.5, 1.5, 1.2, 0.8) AS score FROM d"
        " WHERE d MATCH ? ORDER BY score DESC, asin LIMIT 150",
        (quoted,),
    ).fetchall()


@pytest.fixture(scope="module")
def both() -> tuple[SearchIndex, sqlite3.Connection, list[str]]:
    records = list(generate_records(SyntheticSettings(products=3000, seed=3, noise=0.02)))
    entries = list(RecordReader(STANDARD).read(records))
    index = Catalogue.of(entries, STANDARD, source="test").index
    database = fts5([(item.asin, document) for item, document in entries])
    queries = [record["instructions"][0]["instruction"] for record in records[::30]]
    queries += [item.title for item, _ in entries[::50]]
    queries += ["m/l", "1.5m床 usb-c", "a4 xl 500ml", "rr344-3 k-1", "冰", "pro"]
    return index, database, [query for query in queries if tokenise(query)]


def test_ranking_equals_fts5_on_the_whole_catalogue(
    both: tuple[SearchIndex, sqlite3.Connection, list[str]],
) -> None:
    index, database, queries = both
    assert len(queries) > 150
    for query in queries:
        ours, theirs = index.search(query), reference(database, query)
        assert [asin for asin, _ in ours] == [asin for asin, _ in theirs], query
        assert all(abs(a - b) <= 1e-13 * b for (_, a), (_, b) in zip(ours, theirs, strict=True)), (
            query
        )


def test_queries_of_equal_tokens_are_ranked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = world([product(), product("000000000001", title="宿舍迷你冰箱")])
    asked: list[tuple[str, ...]] = []
    rank = SearchIndex.ids
    monkeypatch.setattr(
        SearchIndex,
        "ids",
        lambda index, tokens, limit: asked.append(tokens) or rank(index, tokens, limit),
    )
    assert shop.search("宿舍，冰箱") == shop.search("宿舍 冰箱!") != ()
    assert asked == [("宿舍", "冰箱")]
    long = " ".join(f"w{number}" for number in range(300))
    assert shop.search(long) == shop.search(long) == ()
    assert len(asked) == 3
