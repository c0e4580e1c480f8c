"""In-memory search: multi-field BM25 with phrase tokens (environment.md §3.1, §3.3).

The score is the closed form of SQLite FTS5's ``bm25()`` over the same columns, evaluated in the
same order of operations, so that both engines agree to the last bits. Contributions are computed
once per (token, document) and kept as compressed rows; a query adds rows and selects the best by
partial selection. Equal scores are ordered by product id as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trainer.shop.search_index import COLUMNS, Floats, IndexArrays, Ints, SmallInts, sums
from trainer.shop.tokens import QUERY_NORMALISER, TOKENISER, subtokens, tokenise

TIE_BREAKER = "asin-ascending"

#: below this many postings, a query is merged instead of summed over all documents
_FEW = 4096
#: tokens in more than this share of the documents may have a dense row …
_DENSE_SHARE = 1 / 12
#: … as long as all dense rows fit into these bytes
_DENSE_BYTES = 32 * 2**20

#: documents (ascending) and what one query token adds to each
Row = tuple[SmallInts | Ints, Floats]
_EMPTY: Row = (np.empty(0, np.int32), np.empty(0))


class SearchIndex:
    """A read-only index; safe to share between threads."""

    def __init__(self, arrays: IndexArrays) -> None:
        self._arrays = arrays
        self.size = len(arrays.asins)
        self._dense = self._dense_rows()

    def _dense_rows(self) -> dict[int, Floats]:
        """Rows of the most frequent tokens, one value a document: added without an index."""
        counts = np.diff(self._arrays.rows.starts)
        frequent = np.flatnonzero(counts > self.size * _DENSE_SHARE)
        frequent = frequent[np.argsort(-counts[frequent], kind="stable")]
        dense = {}
        for token in frequent[: _DENSE_BYTES // max(self.size * 8, 1)].tolist():
            documents, values = self._slice(token)
            dense[token] = sums(documents, values)
            dense[token].resize(self.size)
        return dense

    def _slice(self, number: int) -> Row:
        rows = self._arrays.rows
        begin, end = rows.starts[number], rows.starts[number + 1]
        return rows.documents[begin:end], rows.values[begin:end]

    def _row(self, token: str) -> tuple[int, Row]:
        """The token's number, -1 for a phrase, and its row."""
        vocabulary = self._arrays.vocabulary
        if token.isalnum():
            number = vocabulary.get(token)
            return (-1, _EMPTY) if number is None else (number, self._slice(number))
        numbers = [vocabulary.get(part, -1) for part in subtokens(token)]
        if not numbers or -1 in numbers:
            return -1, _EMPTY
        return -1, self._phrase_row(numbers)

    def _phrase_row(self, numbers: Sequence[int]) -> Row:
        arrays, where = self._arrays, self._arrays.positions
        starts = self._positions_of(numbers[0])
        for distance, number in enumerate(numbers[1:], 1):
            following = self._positions_of(number) - distance
            starts = np.intersect1d(starts, following, assume_unique=True)
        if not len(starts):
            return _EMPTY
        slots = where.slots[np.searchsorted(where.sorted_positions, starts)]
        documents, inverse = np.unique(arrays.rank[slots // len(COLUMNS)], return_inverse=True)
        tf = sums(inverse, arrays.column_weights[slots % len(COLUMNS)])
        idf = float(arrays.scorer.idf(np.array([len(documents)]))[0])
        return documents, arrays.scorer.contributions(idf, tf, documents)

    def _positions_of(self, number: int) -> Ints:
        where = self._arrays.positions
        positions: Ints = where.positions[where.starts[number] : where.starts[number + 1]]
        return positions

    def _rank_tokens(self, tokens: tuple[str, ...], limit: int) -> Row:
        """The best ``limit`` documents, best first, and their scores.

        Contributions are added in the order of the tokens whichever way is taken, so the way never
        shows in the result.
        """
        rows = [row for row in map(self._row, tokens) if len(row[1][0])]
        if not rows or limit <= 0:
            return _EMPTY
        if sum(len(documents) for _, (documents, _) in rows) <= _FEW:
            found, scores = _merged([row for _, row in rows])
        else:
            found, scores = self._summed(rows, limit)
        best = np.argsort(-scores, kind="stable")[:limit]
        return found[best], scores[best]

    def _summed(self, rows: Sequence[tuple[int, Row]], limit: int) -> Row:
        """All documents that can be among the best ``limit``, ascending."""
        scores = np.zeros(self.size)
        for number, (documents, values) in rows:
            dense = self._dense.get(number)
            if dense is None:
                np.add.at(scores, documents, values)
            else:
                scores += dense
        least = np.partition(scores, -limit)[-limit] if limit < self.size else 0.0
        found = np.flatnonzero(scores >= least) if least > 0 else np.flatnonzero(scores)
        return found, scores[found]

    def search(self, query: str, limit: int = 150) -> list[tuple[str, float]]:
        """Product ids and scores, best first. An empty query finds nothing."""
        found, scores = self._rank_tokens(tokenise(query), limit)
        asins = self._arrays.asins
        return [(asins[i], s) for i, s in zip(found.tolist(), scores.tolist(), strict=True)]

    def ids(self, tokens: tuple[str, ...], limit: int) -> tuple[str, ...]:
        """Product ids only, best first, for tokens already made."""
        found, _ = self._rank_tokens(tokens, limit)
        return tuple(map(self._arrays.asins.__getitem__, found.tolist()))

    def identity(self) -> dict[str, Any]:
        """What decides the order of results, beside the documents."""
        return {
            "product_count": self.size,
            "field_weights": dict(self._arrays.weights),
            "query_normalizer": QUERY_NORMALISER,
            "tokenizer": TOKENISER,
            "tie_breaker": TIE_BREAKER,
        }


def _merged(rows: Sequence[Row]) -> Row:
    """Documents of a few short rows, ascending, with the sums of their contributions."""
    if len(rows) == 1:
        return rows[0]
    documents = np.concatenate([documents for documents, _ in rows])
    order = documents.argsort(kind="stable")
    documents = documents[order]
    first = np.empty(len(documents), bool)
    first[0] = True
    np.not_equal(documents[1:], documents[:-1], out=first[1:])
    values = np.concatenate([values for _, values in rows])[order]
    return documents[first], sums(first.cumsum() - 1, values)
