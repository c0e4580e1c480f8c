"""The search of the shop beside SQLite FTS5 on the same documents, for the same queries."""

from __future__ import annotations

import random
import sqlite3
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from benchmarks.shop_work import Figure, figure, percentile
from trainer.shop.catalogue import Document
from trainer.shop.profiles import COMPAT
from trainer.shop.records import RecordReader
from trainer.shop.search import SearchIndex
from trainer.shop.search_index import IndexBuilder
from trainer.shop.tokens import tokenise

LIMIT = 150
FTS5_QUERIES = 100
_RARE = range(5, 61)  # documents that hold a rare word

Tokens = tuple[str, ...]


class Material:
    """What queries are drawn from: texts of a sample of products, and rare words."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._documents: Counter[str] = Counter()

    def see(self, text: str, document: Document) -> None:
        self.texts.append(text)
        self._documents.update({token for column in document for token in column})

    def sentences(self, tokens: int, count: int, rng: random.Random) -> list[Tokens]:
        """Queries of exactly ``tokens`` distinct tokens from titles and attributes."""
        queries = []
        for _ in range(count):
            text = ""
            while len(tokenise(text)) < tokens:
                words = rng.choice(self.texts)
                start = rng.randrange(max(1, len(words) - 6))
                text += " " + words[start : start + 6]
            queries.append(tokenise(text)[:tokens])
        return queries

    def rare(self, count: int, rng: random.Random) -> list[Tokens]:
        """Queries of three rare words."""
        words = sorted(w for w, n in self._documents.items() if n in _RARE and w.isalnum())
        return [tuple(rng.sample(words, 3)) for _ in range(count)]


def entries(records: Iterable[dict[str, Any]]) -> Iterator[tuple[str, str, Document]]:
    """Product id, text and search document of each record."""
    for product, document in RecordReader(COMPAT).read(records):
        yield product.asin, product.title + " ".join(product.attributes), document


def build(
    records: Iterable[dict[str, Any]], material: Material, *, sample: int, fts5: bool
) -> tuple[SearchIndex, sqlite3.Connection | None]:
    """Both indexes in one pass; FTS5 only when asked for."""
    builder = IndexBuilder(COMPAT.field_weights)
    database = _database() if fts5 else None
    for number, (asin, text, document) in enumerate(entries(records)):
        builder.add(asin, document)
        if number < sample:
            material.see(text, document)
        if database is not None:
            row = (asin, *(" ".join(column) for column in document))
            database.execute("INSERT INTO d VALUES (?,?,?,?,?,?,?,?)", row)
    if database is not None:
        database.execute("INSERT INTO d(d) VALUES ('optimize')")
    return SearchIndex(builder.build()), database


def _database() -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.execute(
        "CREATE VIRTUAL TABLE d USING fts5(asin UNINDEXED, title, brand, category, model,"
        " attributes, options, bullets, tokenize='unicode61 remove_diacritics 2')"
    )
    return database


def seconds_of_ours(index: SearchIndex, queries: Sequence[Tokens]) -> list[float]:
    """Each query once, so never from the cache."""
    took = []
    for tokens in queries:
        started = time.thread_time()
        index.ids(tokens, LIMIT)
        took.append(time.thread_time() - started)
    return took


def ask_fts5(
    database: sqlite3.Connection, queries: Sequence[Tokens]
) -> tuple[list[float], list[tuple[str, ...]]]:
    """Seconds and product ids of each query."""
    took, found = [], []
    for tokens in queries:
        match = " OR ".join(f'"{token}"' for token in tokens)
        started = time.thread_time()
        rows = database.execute(
            "SELECT asin, -bm25(d, 0.0, 3.0, 2.0, 2.0, 2.5, 1.5, 1.2, 0.8) AS score FROM d"
            " WHERE d MATCH ? ORDER BY score DESC, asin LIMIT ?",
            (match, LIMIT),
        ).fetchall()
        took.append(time.thread_time() - started)
        found.append(tuple(row[0] for row in rows))
    return took, found


def query_sets(material: Material, count: int) -> dict[str, list[Tokens]]:
    """The three kinds of queries."""
    rng = random.Random(7)
    return {
        "14_tokens": material.sentences(14, count, rng),
        "31_tokens": material.sentences(31, count, rng),
        "rare_words": material.rare(count, rng),
    }


def compare(records: Iterable[dict[str, Any]], *, queries: int) -> dict[str, Figure]:
    """Medians by kind with FTS5 as the peer, the 95th percentile over all sentences, and the share
    of queries that both answer with the same products in the same order."""
    material = Material()
    index, database = build(records, material, sample=10**9, fts5=True)
    assert database is not None
    figures: dict[str, Figure] = {}
    ours: list[float] = []
    theirs: list[float] = []
    same: list[bool] = []
    for name, asked in query_sets(material, queries).items():
        index.ids(asked[0], 1)
        took = seconds_of_ours(index, asked)
        peer, expected = ask_fts5(database, asked[:FTS5_QUERIES])
        same += [index.ids(q, LIMIT) == ids for q, ids in zip(asked, expected, strict=False)]
        middle, peer_middle = statistics.median(took) * 1e3, statistics.median(peer) * 1e3
        figures[f"search_{name}_p50_ms"] = figure(middle, "ms", peer_middle, peer_middle / middle)
        if name != "rare_words":
            ours += took
            theirs += peer
    high, peer_high = percentile(ours, 95) * 1e3, percentile(theirs, 95) * 1e3
    figures["search_p95_ms"] = figure(high, "ms", peer_high, peer_high / high)
    figures["search_same_as_fts5"] = figure(sum(same) / len(same), "of the queries")
    return figures


def growth(records: Iterable[dict[str, Any]], *, queries: int, factor: int) -> dict[str, Figure]:
    """Our own figures on a larger catalogue, without a peer."""
    material = Material()
    index, _ = build(records, material, sample=30_000, fts5=False)
    figures = {f"growth_{factor}x_documents": figure(index.size, "documents")}
    for name, asked in query_sets(material, queries).items():
        took = seconds_of_ours(index, asked)
        figures[f"growth_{factor}x_{name}_p50_ms"] = figure(statistics.median(took) * 1e3, "ms")
        figures[f"growth_{factor}x_{name}_p95_ms"] = figure(percentile(took, 95) * 1e3, "ms")
    return figures
