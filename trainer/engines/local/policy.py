"""``LocalPolicy``: the tiny transformer behind the policy protocol, sampled exactly.

What a sampled token depends on: the tokens before it, the weights, and the noise of (noise key,
turn, token). The batch around it only decides in which order sums are rounded. Log-probabilities
are those of the distribution that was sampled from, temperature included, and token records hold
what was sampled, never a text encoded again.

A turn ends with ``<end>``, or unfinished after ``max_turn_tokens`` (``finish_reason`` ``length``).
An episode whose next turn might not fit the context ends the same way, with an empty turn.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from trainer.engines.local.cache import KeyValueCache
from trainer.engines.local.checkpoint import checkpoint_id, weights_sha256
from trainer.engines.local.model import TinyTransformer
from trainer.engines.local.noise import gumbel, stream_start
from trainer.engines.local.tokenizer import WordTokenizer
from trainer.errors import InputError
from trainer.rollout.policy import Conversation, Message, ModelTurn, TokenRecord

PROVIDER = "intraskill-local"


@dataclass(frozen=True, slots=True)
class Sampling:
    """How turns are drawn: from the softmax at ``temperature``, at most so many tokens each."""

    temperature: float = 1.0
    max_turn_tokens: int = 7

    def to_record(self) -> dict[str, Any]:
        """The settings as identities show them."""
        return {
            "method": "gumbel-max",
            "temperature": self.temperature,
            "top_p": 1.0,
            "max_new_tokens": self.max_turn_tokens,
        }


class LocalPolicy:
    """A model and its words. The weights may move between batches, never during one."""

    def __init__(
        self, model: TinyTransformer, tokenizer: WordTokenizer, sampling: Sampling | None = None
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.sampling = sampling or Sampling()
        self._spare: KeyValueCache | None = None

    def identity(self) -> dict[str, Any]:
        """Checkpoint by the hash of its weights now, vocabulary and sampling."""
        digest = weights_sha256(self.model)
        return {
            "provider": PROVIDER,
            "checkpoint_id": checkpoint_id(digest),
            "weights_sha256": digest,
            "vocabulary_sha256": self.tokenizer.sha256,
            "context": self.model.config.context,
            "sampling": self.sampling.to_record(),
        }

    def begin(self, conversations: Sequence[Conversation]) -> LocalBatch:
        """Start a batch; each distinct prompt is computed once.

        Raises InputError when a prompt leaves no room for a turn.
        """
        prompts = [tuple(self._prompt(conversation)) for conversation in conversations]
        return LocalBatch(self, prompts, [conversation.noise_key for conversation in conversations])

    def take_cache(self, rows: int) -> KeyValueCache:
        """A cleared cache of at least ``rows`` rows: the one given back last, if large enough."""
        cache, self._spare = self._spare, None
        if cache is None or cache.rows < rows:
            return KeyValueCache(self.model, rows)
        cache.clear()
        return cache

    def give_back(self, cache: KeyValueCache) -> None:
        """Keep a finished batch's memory for the next one."""
        self._spare = cache

    def _prompt(self, conversation: Conversation) -> list[int]:
        messages = conversation.messages
        prompt = self.tokenizer.conversation(
            (message.role, message.content) for message in messages
        )
        room = self.model.config.context - self.sampling.max_turn_tokens
        if len(prompt) > room:
            raise InputError(
                f"a prompt has {len(prompt)} tokens, and the model reads {room} before a turn",
                field="prompt",
                value=len(prompt),
                remedy="Show fewer or shorter chunks: the skill bank is too long for this model",
            )
        return prompt


@dataclass(slots=True)
class _Row:
    """One conversation: everything fed or sampled so far; the cache still lacks ``pending``."""

    noise_key: str
    tokens: list[int]
    log_probs: list[float]
    mask: list[int]
    pending: list[int]
    slot: int = 0
    turn: int = 0
    turn_start: int = 0

    @classmethod
    def of(cls, noise_key: str, prompt: Sequence[int]) -> _Row:
        """A conversation whose prompt is in the cache but for its last token, ``<act>``."""
        size = len(prompt)
        return cls(noise_key, list(prompt), [0.0] * size, [0] * size, [prompt[-1]])

    def sample(self, token: int, log_prob: float) -> None:
        self.tokens.append(token)
        self.log_probs.append(log_prob)
        self.mask.append(1)
        self.pending = [token]

    def append(self, tokens: Sequence[int]) -> None:
        self.tokens += tokens
        self.log_probs += [0.0] * len(tokens)
        self.mask += [0] * len(tokens)
        self.pending += tokens


class LocalBatch:
    """Conversations in progress. Those that run fill the first slots of the cache without gaps."""

    def __init__(
        self, policy: LocalPolicy, prompts: Sequence[Sequence[int]], noise_keys: Sequence[str]
    ) -> None:
        self._policy = policy
        self._rows = [_Row.of(key, prompt) for key, prompt in zip(noise_keys, prompts, strict=True)]
        # Prompts of similar length lie together, so that attention has little to pad.
        order = sorted(range(len(prompts)), key=lambda row: (len(prompts[row]), prompts[row], row))
        for slot, row in enumerate(order):
            self._rows[row].slot = slot
        self._running = set(range(len(prompts)))
        self._cache = policy.take_cache(len(prompts))
        self._prefill([prompts[row] for row in order])

    def generate(
        self, rows: Sequence[int], tools: Sequence[Sequence[Mapping[str, Any]]]
    ) -> list[ModelTurn]:
        """One turn for each of ``rows``. The model knows no schemas: ``tools`` is not read."""
        asked = [self._rows[row] for row in rows]
        for row in asked:
            row.turn_start = len(row.tokens)
        live = sorted(filter(self._fits, asked), key=lambda row: row.slot)
        for token in range(self._policy.sampling.max_turn_tokens):
            if not live:
                break
            states = self._cache.feed([row.slot for row in live], [row.pending for row in live])
            self._sample(live, states, token)
            live = [row for row in live if row.tokens[-1] != self._policy.tokenizer.end]
        turns = [self._turn(row) for row in asked]
        for row in asked:
            row.turn += 1
        return turns

    def extend(self, messages: Mapping[int, Sequence[Message]]) -> None:
        """Append what followed the last turn; rows that are not named have ended.

        Raises ValueError for the model's own words: it has them already.
        """
        for row, new in messages.items():
            if any(message.role == "assistant" for message in new):
                raise ValueError(f"row {row}: the model's own turn must not be appended again")
            texts = (message.content for message in new)
            self._rows[row].append(self._policy.tokenizer.following(texts))
        self._keep(set(messages))

    def tokens(self, row: int) -> TokenRecord:
        """The exact tokens of ``row`` so far; they stay readable after it has ended."""
        state = self._rows[row]
        return TokenRecord(tuple(state.tokens), tuple(state.mask), tuple(state.log_probs))

    def _prefill(self, prompts: Sequence[Sequence[int]]) -> None:
        """Compute each distinct prompt in one slot and copy it to its equals, which lie next."""
        slots = range(len(prompts))
        first = [slot for slot in slots if slot == 0 or prompts[slot] != prompts[slot - 1]]
        self._cache.feed(first, [prompts[slot][:-1] for slot in first])
        sources = [first[bisect_right(first, slot) - 1] for slot in slots]
        copies = [slot for slot in slots if sources[slot] != slot]
        self._cache.copy([sources[slot] for slot in copies], copies)

    def _fits(self, row: _Row) -> bool:
        room = self._policy.model.config.context - self._policy.sampling.max_turn_tokens
        return len(row.tokens) <= room

    @torch.no_grad()
    def _sample(self, live: Sequence[_Row], states: Tensor, token: int) -> None:
        """Draw one token for each row: the largest log-probability plus Gumbel noise."""
        logits = self._policy.model.logits(states) / self._policy.sampling.temperature
        log_probs = torch.log_softmax(logits, dim=-1)
        starts = [stream_start(row.noise_key, row.turn, token) for row in live]
        noise = torch.from_numpy(gumbel(starts, log_probs.shape[-1])).to(log_probs.device)
        drawn = (log_probs + noise).argmax(dim=-1, keepdim=True)
        values = log_probs.gather(-1, drawn).squeeze(-1).tolist()
        for row, word, value in zip(live, drawn.squeeze(-1).tolist(), values, strict=True):
            row.sample(word, value)

    def _turn(self, row: _Row) -> ModelTurn:
        end = self._policy.tokenizer.end
        drawn = row.tokens[row.turn_start :]
        finished = bool(drawn) and drawn[-1] == end
        return ModelTurn(
            text=self._policy.tokenizer.decode(drawn[:-1] if finished else drawn),
            finish_reason="stop" if finished else "length",
            token_ids=tuple(drawn),
            log_probs=tuple(row.log_probs[row.turn_start :]),
            usage={"prompt_tokens": row.turn_start, "completion_tokens": len(drawn)},
        )

    def _keep(self, running: set[int]) -> None:
        """Free the slots of rows that ended, and move the last rows into the gaps."""
        if running == self._running:
            return
        self._running = running
        kept = [self._rows[row] for row in sorted(running)]
        taken = {row.slot for row in kept}
        gaps = [slot for slot in range(len(kept)) if slot not in taken]
        movers = [row for row in kept if row.slot >= len(kept)]
        self._cache.copy([row.slot for row in movers], gaps)
        for row, slot in zip(movers, gaps, strict=True):
            row.slot = slot
        if not kept:
            self._policy.give_back(self._cache)
