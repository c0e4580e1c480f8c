"""Keys and values of sequences in progress, and the forward pass that extends them.

Each row of the cache holds one sequence at its own length. ``feed`` takes the next tokens of any
rows at once: everything but attention is computed on the tokens alone, without padding, and the
last block is asked only at each row's last token. Attention reads the cache in place, some rows at
a time, so that short rows do not wait for long ones. A row past its length holds numbers of earlier
use; they are finite, and no query looks there.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from trainer.engines.local.functional import rotate_
from trainer.engines.local.model import PAD_ID, Block, TinyTransformer

ROWS_PER_CALL = 32

Ids = NDArray[np.int64]


class KeyValueCache:
    """Room for ``rows`` sequences of ``context`` tokens; ``lengths`` [rows] says what is filled.

    Memory: layers · rows · context · 2 · width · 4 bytes, touched only where it is filled.
    """

    def __init__(self, model: TinyTransformer, rows: int) -> None:
        config = model.config
        self.model = model
        self.rows = rows
        self.context = config.context
        self.lengths: Ids = np.zeros(rows, dtype=np.int64)
        self._last: Ids = np.full((rows, 2), PAD_ID)
        self._device = model.cosines.device
        shape = (config.layers, rows, self.context, 2, config.heads, config.head_width)
        # NumPy's zeros take no memory until they are written; torch's do at once.
        self._store = torch.from_numpy(np.zeros(shape, dtype=np.float32)).to(self._device)

    def clear(self) -> None:
        """Forget every sequence."""
        self.lengths[:] = 0
        self._last[:] = PAD_ID

    def copy(self, source: int, target: int) -> None:
        """Make row ``target`` equal to row ``source``."""
        filled = int(self.lengths[source])
        self._store[:, target, :filled] = self._store[:, source, :filled]
        self.lengths[target] = filled
        self._last[target] = self._last[source]

    @torch.no_grad()
    def feed(self, rows: Sequence[int], pieces: Sequence[Sequence[int]]) -> Tensor:
        """Append ``pieces[i]``, at least one token, to row ``rows[i]``; ``rows`` ascend.

        Returns the final states [len(rows), width] at each row's last token. Raises ValueError when
        a row would grow past the context.
        """
        fed = _lay_out(np.asarray(rows), pieces, self.lengths, self._last)
        longest = int(fed.positions.max()) + 1
        if longest > self.context:
            raise ValueError(f"a row of {longest} tokens in a context of {self.context}")
        places = torch.from_numpy(fed.rows * self.context + fed.positions).to(self._device)
        positions, *ids = (
            torch.from_numpy(column).to(self._device)
            for column in (fed.positions, fed.tokens, fed.previous, fed.before_previous)
        )
        turn = self.model.rotary(positions.unsqueeze(-1))
        stream = self.model.embed(*ids)
        *blocks, last = zip(self.model.layers, self._store, strict=True)
        calls = self._calls(fed, np.arange(len(fed.tokens)))
        for block, store in blocks:
            query = self._remember(block, store, stream, turn, places)
            stream = block.combine(stream, self._attend(query, store, calls))
        block, store = last
        query = self._remember(block, store, stream, turn, places)
        if len(fed.ends) < len(fed.tokens):
            calls = self._calls(fed, fed.ends)
            stream = stream[torch.from_numpy(fed.ends).to(self._device)]
        states: Tensor = self.model.norm(block.combine(stream, self._attend(query, store, calls)))
        self.lengths[rows] = fed.positions[fed.ends] + 1
        self._last[rows] = np.stack((fed.previous[fed.ends], fed.tokens[fed.ends]), axis=1)
        return states

    def _remember(
        self,
        block: Block,
        store: Tensor,
        stream: Tensor,
        turn: tuple[Tensor, Tensor],
        places: Tensor,
    ) -> Tensor:
        """Store the keys and values of ``stream`` and return its queries [N, H, D]."""
        heads = block.project(stream)
        rotate_(heads[:, :2], *turn)
        store.flatten(0, 1).index_copy_(0, places, heads[:, 1:])
        return heads[:, 0]

    def _attend(self, query: Tensor, store: Tensor, calls: Sequence[_Call]) -> Tensor:
        """What the queries of ``calls`` gather [n, H, D]."""
        gathered = []
        for call in calls:
            key, value = store[call.first : call.end, : call.reach].transpose(1, 3).unbind(2)
            asked = query.index_select(0, call.queries).view(len(key), -1, *query.shape[1:])
            attended = functional.scaled_dot_product_attention(
                asked.transpose(1, 2), key, value, attn_mask=call.mask
            )
            gathered.append(attended.transpose(1, 2).flatten(0, 1).index_select(0, call.real))
        return torch.cat(gathered)

    def _calls(self, fed: _Fed, asking: Ids) -> list[_Call]:
        """Calls for the fed tokens ``asking``, places in the list, cut by rows of the cache."""
        rows = fed.rows[asking]
        cuts = np.searchsorted(rows, np.arange(0, rows[-1] + ROWS_PER_CALL + 1, ROWS_PER_CALL))
        parts = [asking[start:end] for start, end in itertools.pairwise(cuts) if start < end]
        return [_call(fed, part).to(self._device) for part in parts]


class _Fed(NamedTuple):
    """The list of fed tokens, row after row: for each its row, position and the two ids
    before it. ``ends`` [rows] are the places of the last token of each piece.
    """

    tokens: Ids
    previous: Ids
    before_previous: Ids
    rows: Ids
    positions: Ids
    ends: Ids


class _Call(NamedTuple):
    """One padded attention call: the rows [first, end) of the cache, up to ``reach`` tokens.

    ``queries`` [B·S] are places in the list of fed tokens, ``mask`` [B, 1, S, reach] is true where
    a query may look, ``real`` [n] are the places in B·S of the queries that are no padding.
    """

    first: int
    end: int
    reach: int
    queries: Tensor
    mask: Tensor
    real: Tensor

    def to(self, device: torch.device) -> _Call:
        tensors = (tensor.to(device) for tensor in (self.queries, self.mask, self.real))
        return _Call(self.first, self.end, self.reach, *tensors)


def _lay_out(rows: Ids, pieces: Sequence[Sequence[int]], lengths: Ids, last: Ids) -> _Fed:
    counts = np.fromiter(map(len, pieces), np.int64, len(pieces))
    ends = np.cumsum(counts) - 1
    tokens = np.fromiter(itertools.chain.from_iterable(pieces), np.int64, int(ends[-1]) + 1)
    row = np.repeat(rows, counts)
    offsets = np.arange(len(tokens)) - np.repeat(ends - counts + 1, counts)
    previous = np.where(offsets > 0, np.roll(tokens, 1), last[row, 1])
    before = np.where(offsets > 0, np.roll(previous, 1), last[row, 0])
    return _Fed(tokens, previous, before, row, lengths[row] + offsets, ends)


def _call(fed: _Fed, asking: Ids) -> _Call:
    rows, positions = fed.rows[asking], fed.positions[asking]
    starts = np.searchsorted(rows, rows)  # the first asking token of the same row
    columns = np.arange(len(asking)) - starts
    first, end, asked = int(rows[0]), int(rows[-1]) + 1, int(columns.max()) + 1
    real = (rows - first) * asked + columns
    queries = np.full((end - first) * asked, asking[0])
    seen = np.zeros((end - first) * asked, dtype=np.int64)
    queries[real], seen[real] = asking, positions
    reach = int(positions.max()) + 1
    mask = np.arange(reach) <= seen.reshape(end - first, 1, asked, 1)
    return _Call(first, end, reach, *map(torch.from_numpy, (queries, mask, real)))
