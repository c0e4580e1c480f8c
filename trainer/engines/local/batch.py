"""``LocalBatch``: conversations in progress, computed once for as long as they are the same.

Episodes that have read and said the same words so far form a *branch*: one slot of the cache, one
pass for all of them. Each draws its own next token with its own noise; where the draws differ, the
branch splits and the slot is copied. Siblings of a group begin as one branch and many stay together
for turns; an episode without equals is a branch of its own. What an episode draws depends on none
of this.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from trainer.engines.local.noise import gumbel, stream_start
from trainer.rollout.policy import Message, ModelTurn, TokenRecord

if TYPE_CHECKING:
    from trainer.engines.local.policy import LocalPolicy


@dataclass(slots=True, eq=False)
class _Row:
    """One conversation: its noise and everything read or sampled so far."""

    noise_key: str
    tokens: list[int]
    log_probs: list[float]
    mask: list[int]
    turn: int = 0
    turn_start: int = 0

    def sample(self, token: int, log_prob: float) -> None:
        self.tokens.append(token)
        self.log_probs.append(log_prob)
        self.mask.append(1)

    def since(self, place: int) -> tuple[int, ...]:
        return tuple(self.tokens[place:])

    def read(self, tokens: Sequence[int]) -> None:
        self.tokens += tokens
        self.log_probs += [0.0] * len(tokens)
        self.mask += [0] * len(tokens)


@dataclass(slots=True, eq=False)
class _Branch:
    """Rows with the same tokens. Slot ``slot`` of the cache holds the first ``cached`` of them."""

    slot: int
    rows: list[_Row]
    cached: int

    @property
    def tokens(self) -> list[int]:
        return self.rows[0].tokens


class LocalBatch:
    """A batch of ``LocalPolicy``: its rows, in branches that fill the first slots of the cache."""

    def __init__(
        self, policy: LocalPolicy, prompts: Sequence[tuple[int, ...]], noise_keys: Sequence[str]
    ) -> None:
        self._policy = policy
        self._rows = [
            _Row(key, list(prompt), [0.0] * len(prompt), [0] * len(prompt))
            for key, prompt in zip(noise_keys, prompts, strict=True)
        ]
        # Prompts of similar length lie together, so that attention has little to pad. Their last
        # token waits: a branch is fed what it read last only before it draws.
        distinct = sorted(set(prompts), key=lambda prompt: (len(prompt), prompt))
        by_prompt: dict[tuple[int, ...], list[_Row]] = {prompt: [] for prompt in distinct}
        for row, prompt in zip(self._rows, prompts, strict=True):
            by_prompt[prompt].append(row)
        self._branches = [
            _Branch(slot, rows, len(prompt) - 1)
            for slot, (prompt, rows) in enumerate(by_prompt.items())
        ]
        self._free = list(range(len(distinct), len(prompts)))
        self._cache = policy.take_cache(len(prompts))
        if distinct:
            self._cache.feed(range(len(distinct)), [prompt[:-1] for prompt in distinct])

    def generate(
        self, rows: Sequence[int], tools: Sequence[Sequence[Mapping[str, Any]]]
    ) -> list[ModelTurn]:
        """One turn for each of ``rows``. The model knows no schemas: ``tools`` is not read."""
        asked = [self._rows[row] for row in rows]
        for row in asked:
            row.turn_start = len(row.tokens)
        live = [branch for branch in self._asked_branches(asked) if self._fits(branch)]
        for token in range(self._policy.sampling.max_turn_tokens):
            if not live:
                break
            drawn = self._draw(sorted(live, key=lambda branch: branch.slot), token)
            live = [branch for branch in drawn if branch.tokens[-1] != self._policy.tokenizer.end]
        turns = [self._turn(row) for row in asked]
        for row in asked:
            row.turn += 1
        return turns

    def extend(self, messages: Mapping[int, Sequence[Message]]) -> None:
        """Append what followed the last turn; rows that are not named have ended.

        Raises ValueError for the model's own words: it has them already.
        """
        tokenizer = self._policy.tokenizer
        for row, new in messages.items():
            if any(message.role == "assistant" for message in new):
                raise ValueError(f"row {row}: the model's own turn must not be appended again")
            self._rows[row].read(tokenizer.following(message.content for message in new))
        self._end_all_but({id(self._rows[row]) for row in messages})
        for branch in list(self._branches):
            self._split(branch, partial(_Row.since, place=branch.cached))
        if not self._branches:
            self._policy.give_back(self._cache)

    def tokens(self, row: int) -> TokenRecord:
        """The exact tokens of ``row`` so far; they stay readable after it has ended."""
        state = self._rows[row]
        return TokenRecord(tuple(state.tokens), tuple(state.mask), tuple(state.log_probs))

    def _fits(self, branch: _Branch) -> bool:
        room = self._policy.model.config.context - self._policy.sampling.max_turn_tokens
        return len(branch.tokens) <= room

    def _asked_branches(self, rows: Sequence[_Row]) -> list[_Branch]:
        """The branches of ``rows``, parted from rows that are not asked now."""
        wanted = set(map(id, rows))
        for branch in list(self._branches):
            self._split(branch, lambda row: id(row) in wanted)
        return [branch for branch in self._branches if id(branch.rows[0]) in wanted]

    @torch.no_grad()
    def _draw(self, live: Sequence[_Branch], token: int) -> list[_Branch]:
        """Feed each branch what it lacks and draw a token for each of its rows; then part them.

        The token is the one with the largest sum of log-probability and Gumbel noise.
        """
        pieces = [branch.tokens[branch.cached :] for branch in live]
        states = self._cache.feed([branch.slot for branch in live], pieces)
        logits = self._policy.model.logits(states) / self._policy.sampling.temperature
        rows = [row for branch in live for row in branch.rows]
        counts = torch.tensor([len(branch.rows) for branch in live], device=logits.device)
        log_probs = torch.log_softmax(logits, dim=-1).repeat_interleave(counts, dim=0)
        starts = [stream_start(row.noise_key, row.turn, token) for row in rows]
        noise = torch.from_numpy(gumbel(starts, log_probs.shape[-1])).to(log_probs.device)
        drawn = (log_probs + noise).argmax(dim=-1, keepdim=True)
        values = log_probs.gather(-1, drawn).squeeze(-1).tolist()
        for branch in live:
            branch.cached = len(branch.tokens)
        for row, word, value in zip(rows, drawn.squeeze(-1).tolist(), values, strict=True):
            row.sample(word, value)
        return [part for branch in live for part in self._split(branch, lambda r: r.tokens[-1])]

    def _turn(self, row: _Row) -> ModelTurn:
        tokenizer = self._policy.tokenizer
        drawn = row.tokens[row.turn_start :]
        finished = bool(drawn) and drawn[-1] == tokenizer.end
        return ModelTurn(
            text=tokenizer.decode(drawn[:-1] if finished else drawn),
            finish_reason="stop" if finished else "length",
            token_ids=tuple(drawn),
            log_probs=tuple(row.log_probs[row.turn_start :]),
            usage={"prompt_tokens": row.turn_start, "completion_tokens": len(drawn)},
        )

    def _split(self, branch: _Branch, key: Callable[[_Row], Hashable]) -> list[_Branch]:
        """Part the rows of ``branch`` by ``key``; the first part keeps the slot."""
        parts: dict[Hashable, list[_Row]] = {}
        for row in branch.rows:
            parts.setdefault(key(row), []).append(row)
        branch.rows, *others = parts.values()
        found = [branch]
        for rows in others:
            slot = heapq.heappop(self._free)
            self._cache.copy(branch.slot, slot)
            found.append(_Branch(slot, rows, branch.cached))
        self._branches += found[1:]
        return found

    def _end_all_but(self, running: set[int]) -> None:
        """Drop rows that ended and branches without rows; move the last branches into the gaps."""
        for branch in self._branches:
            branch.rows = [row for row in branch.rows if id(row) in running]
        self._branches = [branch for branch in self._branches if branch.rows]
        count = len(self._branches)
        gaps = sorted(set(range(count)) - {branch.slot for branch in self._branches})
        movers = [branch for branch in self._branches if branch.slot >= count]
        for branch, gap in zip(movers, gaps, strict=True):
            self._cache.copy(branch.slot, gap)
            branch.slot = gap
        self._free = list(range(count, self._cache.rows))
