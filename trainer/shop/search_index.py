"""Builds the arrays that ``search.py`` ranks with (environment.md §3.1, §3.3).

Documents arrive as distinct-token lists by column. Latin tokens are split again at inner signs, as
the full-text engine of the published environment does, so ``usb-c`` is the phrase usb, c and
positions are kept for such parts. Documents are numbered in the order of their ids as text, which
makes the position the tie breaker."""

from __future__ import annotations

import ctypes
import sys
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trainer.errors import InputError
from trainer.shop.tokens import subtokens

COLUMNS = ("title", "brand", "category", "model", "attributes", "options", "bullets")

_K1, _B = 1.2, 0.75
_LEAST_IDF = 1e-6

Ints = npt.NDArray[np.int64]
SmallInts = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rows:
    """Compressed rows: row i is ``values[starts[i]:starts[i + 1]]`` (and its documents)."""

    starts: Ints
    documents: SmallInts
    values: Floats


@dataclass(frozen=True, slots=True)
class Positions:
    """Where latin sub-tokens stand; a gap after each column keeps phrases inside it.

    Row i of (``starts``, ``positions``) is ascending. ``sorted_positions`` and ``slots`` map a
    position to its slot, document × column in the order of adding.
    """

    starts: Ints
    positions: Ints
    sorted_positions: Ints
    slots: SmallInts


class Scorer:
    """The closed form of one token's contribution to one document's score."""

    def __init__(self, lengths: Floats) -> None:
        """``lengths``: tokens of each document over all columns."""
        self._size = len(lengths)
        mean = lengths.mean() if len(lengths) else 1.0
        self._norms = _K1 * (1 - _B + _B * lengths / (mean or 1.0))

    def idf(self, counts: Ints) -> Floats:
        """Inverse document frequency of tokens that occur in ``counts`` documents."""
        n = np.asarray(counts, float)
        idf = np.log((self._size - n + 0.5) / (n + 0.5))
        return np.where(idf <= 0, _LEAST_IDF, idf)

    def contributions(self, idf: Floats | float, tf: Floats, documents: SmallInts | Ints) -> Floats:
        """idf · tf·2.2 / (tf + norm), in the engine's order of operations."""
        values: Floats = idf * ((tf * (_K1 + 1.0)) / (tf + self._norms[documents]))
        return values


def sums(groups: SmallInts | Ints, weights: Floats) -> Floats:
    """Sums of ``weights`` by ``groups`` 0…n, added in order."""
    return np.bincount(groups, weights).astype(np.float64, copy=False)


@dataclass(frozen=True, slots=True)
class IndexArrays:
    """Everything a query reads. ``rank`` maps the order of adding to the document number."""

    asins: tuple[str, ...]
    vocabulary: Mapping[str, int]
    weights: Mapping[str, float]
    column_weights: Floats
    rank: SmallInts
    scorer: Scorer
    rows: Rows
    positions: Positions


class IndexBuilder:
    """Collects documents, then builds the arrays."""

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

    def build(self) -> IndexArrays:
        """The arrays; the builder is not to be used again."""
        stream = np.array(self._stream, np.int32)
        slot_lengths = np.array(self._lengths, np.int32)
        del self._stream, self._lengths
        order = np.array(sorted(range(len(self._asins)), key=self._asins.__getitem__), np.int32)
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        lengths = np.zeros(len(order))
        lengths[rank] = slot_lengths.reshape(-1, len(COLUMNS)).sum(axis=1)
        slots = np.repeat(np.arange(len(slot_lengths), dtype=np.int32), slot_lengths)
        column_weights = np.array(list(self._weights.values()))
        scorer = Scorer(lengths)
        by_token, rows = _rows(
            stream,
            slots,
            rank=rank,
            scorer=scorer,
            column_weights=column_weights,
            tokens=len(self._vocabulary),
        )
        latin = np.array([token.isascii() for token in self._vocabulary], bool)
        arrays = IndexArrays(
            asins=tuple(self._asins[i] for i in order),
            vocabulary=self._vocabulary,
            weights=self._weights,
            column_weights=column_weights,
            rank=rank,
            scorer=scorer,
            rows=rows,
            positions=_positions(stream, slots, by_token, latin),
        )
        del stream, slots, by_token
        _return_freed_memory()
        return arrays


def _rows(
    stream: SmallInts,
    slots: SmallInts,
    *,
    rank: SmallInts,
    scorer: Scorer,
    column_weights: Floats,
    tokens: int,
) -> tuple[Ints, Rows]:
    """The order of the stream by (token, document, place), and one row per token."""
    size = max(len(rank), 1)
    keys = stream.astype(np.int64) * size + rank[slots // len(COLUMNS)]
    by_token = np.argsort(keys, kind="stable")
    keys = keys[by_token]
    first = np.ones(len(keys), bool)
    first[1:] = keys[1:] != keys[:-1]
    keys = keys[first]
    documents = (keys % size).astype(np.int32)
    starts = np.searchsorted(keys, np.arange(tokens + 1, dtype=np.int64) * size)
    del keys
    groups = np.cumsum(first, dtype=np.int32) - 1
    tf = (
        sums(groups, column_weights[slots[by_token] % len(COLUMNS)]) if len(groups) else np.empty(0)
    )
    del groups, first
    counts = np.diff(starts)
    idf = np.repeat(scorer.idf(counts), counts)
    return by_token, Rows(starts, documents, scorer.contributions(idf, tf, documents))


def _positions(
    stream: SmallInts, slots: SmallInts, by_token: Ints, latin: npt.NDArray[np.bool_]
) -> Positions:
    kept = by_token[latin[stream[by_token]]] if len(stream) else by_token
    positions = kept + slots[kept]
    order = np.argsort(positions, kind="stable")
    return Positions(
        starts=np.searchsorted(stream[kept], np.arange(len(latin) + 1)),
        positions=positions,
        sorted_positions=positions[order],
        slots=slots[kept][order],
    )


def _return_freed_memory() -> None:
    """Building frees some hundred megabytes that glibc would otherwise keep for good."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
