"""In-memory search: multi-field BM25 with phrase tokens (environment.md §3.1, §3.3).

The score is the closed form of SQLite FTS5's ``bm25()`` over the same columns, evaluated in the
same order of operations, so that both engines agree to the last bits. Contributions are computed
once per (token, document) and kept as compressed rows; a query adds rows and selects the best by
partial selection. Equal scores are ordered by product id as text.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.errors import InputError
from trainer.shop.tokens import QUERY_NORMALISER, TOKENISER, subtokens, tokenise

COLUMNS = ("title", "brand", "category", "model", "attributes", "options", "bullets")
TIE_BREAKER = "asin-ascending"

_K1, _B = 1.2, 0.75
_LEAST_IDF = 1e-6

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
#: documents (ascending) and what one query token adds to each
Row = tuple[npt.NDArray[np.int32], Floats]
_EMPTY: Row = (np.empty(0, np.int32), np.empty(0))


class IndexBuilder:
    """Collects documents, then builds the index."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        if tuple(weights) != COLUMNS:
            raise InputError(
                "field weights must name the search columns in order",
                field="field_weights",
                value=tuple(weights),
                remedy=f"Expected {COLUMNS}",
            )
        self._weights = dict(weights)
        self._vocabulary: dict[str, int] = {}
        self._stream = array("i")
        self._lengths = array("i")
        self._asins: list[str] = []

    def add(self, asin: str, columns: Sequence[Sequence[str]]) -> None:
        """Add a document: one distinct-token list per column. A column of weight 0 is left out."""
        vocabulary = self._vocabulary
        for weight, tokens in zip(self._weights.values(), columns, strict=True):
            before = len(self._stream)
            if weight:
                self._stream.extend(
                    vocabulary.setdefault(part, len(vocabulary))
                    for token in tokens
                    for part in subtokens(token)
                )
            self._lengths.append(len(self._stream) - before)
        self._asins.append(asin)

    def build(self) -> SearchIndex:
        return SearchIndex(
            self._asins,
            self._vocabulary,
            np.frombuffer(self._stream, np.int32) if self._stream else np.empty(0, np.int32),
            np.frombuffer(self._lengths, np.int32).reshape(-1, len(COLUMNS)),
            self._weights,
        )


def _sums(groups: Ints, weights: Floats) -> Floats:
    """Sums of ``weights`` by ``groups`` 0…n, added in order."""
    return np.bincount(groups, weights).astype(np.float64, copy=False)


class SearchIndex:
    """A read-only index; safe to share between threads."""

    def __init__(
        self,
        asins: Sequence[str],
        vocabulary: Mapping[str, int],
        stream: npt.NDArray[np.int32],
        lengths: npt.NDArray[np.int32],
        weights: Mapping[str, float],
    ) -> None:
        """``stream``: sub-tokens of all documents, column by column; ``lengths``: [N, 7]."""
        self.weights = dict(weights)
        self.size = len(asins)
        order = sorted(range(self.size), key=asins.__getitem__)
        self._asins = [asins[i] for i in order]
        self._rank = np.empty(self.size, np.int64)
        self._rank[order] = np.arange(self.size)
        self._vocabulary = vocabulary
        self._column_weights = np.array(list(self.weights.values()))
        self._lengths = np.zeros(self.size)
        self._lengths[self._rank] = lengths.sum(axis=1)
        mean = self._lengths.mean() if self.size else 1.0
        self._norms = _K1 * (1 - _B + _B * self._lengths / (mean or 1.0))
        self._fill_rows(stream, lengths.ravel())
        self._ranked = lru_cache(maxsize=4096)(self._rank_tokens)

    def _fill_rows(self, stream: npt.NDArray[np.int32], lengths: npt.NDArray[np.int32]) -> None:
        slots = np.repeat(np.arange(len(lengths)), lengths)
        documents = self._rank[slots // len(COLUMNS)]
        weights = self._column_weights[slots % len(COLUMNS)]
        keys = stream.astype(np.int64) * max(self.size, 1) + documents
        by_token = np.argsort(keys, kind="stable")
        keys = keys[by_token]
        first = np.concatenate(([True], keys[1:] != keys[:-1])) if len(keys) else np.empty(0, bool)
        tf = _sums(np.cumsum(first) - 1, weights[by_token])
        tokens = (keys[first] // max(self.size, 1)).astype(np.int64)
        self._documents = (keys[first] % max(self.size, 1)).astype(np.int32)
        self._starts = np.searchsorted(tokens, np.arange(len(self._vocabulary) + 1))
        counts = np.diff(self._starts)
        self._values = self._contributions(
            np.repeat(self._idf(counts), counts), tf, self._documents
        )
        self._keep_positions(stream, slots, by_token)

    def _keep_positions(self, stream: npt.NDArray[np.int32], slots: Ints, by_token: Ints) -> None:
        """Where latin sub-tokens stand, for phrases. A gap after each column keeps them inside."""
        latin = np.array([token.isascii() for token in self._vocabulary], bool)
        kept = by_token[latin[stream[by_token]]] if len(stream) else by_token
        self._positions = kept + slots[kept]
        self._position_starts = np.searchsorted(stream[kept], np.arange(len(self._vocabulary) + 1))
        self._slot_of = np.empty(0, np.int64)
        order = np.argsort(self._positions, kind="stable")
        self._sorted_positions = self._positions[order]
        self._slot_of = slots[kept][order]

    def _idf(self, counts: Ints) -> Floats:
        n = np.asarray(counts, float)
        idf = np.log((self.size - n + 0.5) / (n + 0.5))
        return np.where(idf <= 0, _LEAST_IDF, idf)

    def _contributions(
        self, idf: Floats | float, tf: Floats, documents: npt.NDArray[np.int32]
    ) -> Floats:
        values: Floats = idf * ((tf * (_K1 + 1.0)) / (tf + self._norms[documents]))
        return values

    def _row(self, token: str) -> Row:
        parts = subtokens(token)
        numbers = [self._vocabulary.get(part, -1) for part in parts]
        if not numbers or -1 in numbers:
            return _EMPTY
        if len(numbers) > 1:
            return self._phrase_row(numbers)
        begin, end = self._starts[numbers[0]], self._starts[numbers[0] + 1]
        return self._documents[begin:end], self._values[begin:end]

    def _phrase_row(self, numbers: Sequence[int]) -> Row:
        starts = self._positions_of(numbers[0])
        for distance, number in enumerate(numbers[1:], 1):
            following = self._positions_of(number) - distance
            starts = np.intersect1d(starts, following, assume_unique=True)
        if not len(starts):
            return _EMPTY
        slots = self._slot_of[np.searchsorted(self._sorted_positions, starts)]
        found, inverse = np.unique(self._rank[slots // len(COLUMNS)], return_inverse=True)
        tf = _sums(inverse, self._column_weights[slots % len(COLUMNS)])
        documents = found.astype(np.int32)
        idf = self._idf(np.array([len(documents)]))[0]
        return documents, self._contributions(float(idf), tf, documents)

    def _positions_of(self, number: int) -> Ints:
        positions: Ints = self._positions[
            self._position_starts[number] : self._position_starts[number + 1]
        ]
        return positions

    def _rank_tokens(self, tokens: tuple[str, ...], limit: int) -> tuple[Ints, Floats]:
        """The best ``limit`` documents, best first, and their scores."""
        rows = [row for row in map(self._row, tokens) if len(row[0])]
        if not rows or limit <= 0:
            return np.empty(0, np.int64), np.empty(0)
        scores = np.zeros(self.size)
        for documents, values in rows:
            scores[documents] += values
        found = np.flatnonzero(scores)
        kept = scores[found]
        if len(found) > limit:
            least = np.partition(kept, len(kept) - limit)[len(kept) - limit]
            above = kept >= least
            found, kept = found[above], kept[above]
        best = np.argsort(-kept, kind="stable")[:limit]
        return found[best], kept[best]

    def search(self, query: str, limit: int = 150) -> list[tuple[str, float]]:
        """Product ids and scores, best first. An empty query finds nothing."""
        found, scores = self._ranked(tokenise(query), limit)
        return [(self._asins[i], s) for i, s in zip(found.tolist(), scores.tolist(), strict=True)]

    def ids(self, tokens: tuple[str, ...], limit: int) -> tuple[str, ...]:
        """Product ids only, best first, for tokens already made."""
        found, _ = self._ranked(tokens, limit)
        return tuple(map(self._asins.__getitem__, found.tolist()))

    def cache_info(self) -> object:
        """Hits and misses of the query cache."""
        return self._ranked.cache_info()

    def identity(self) -> dict[str, Any]:
        """What decides the order of results, beside the documents."""
        return {
            "product_count": self.size,
            "field_weights": dict(self.weights),
            "query_normalizer": QUERY_NORMALISER,
            "tokenizer": TOKENISER,
            "tie_breaker": TIE_BREAKER,
        }
