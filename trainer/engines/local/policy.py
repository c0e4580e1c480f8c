"""``LocalPolicy``: the tiny transformer behind the policy protocol, sampled exactly.

What a sampled token depends on: the tokens before it, the weights, and the noise of (noise key,
turn, token). The batch around it only decides in which order sums are rounded. Log-probabilities
are those of the distribution that was sampled from, temperature included, and token records hold
what was sampled, never a text encoded again.

A turn ends with ``<end>``, or unfinished after ``max_turn_tokens`` (``finish_reason`` ``length``).
An episode whose next turn might not fit the context ends the same way, with an empty turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainer.engines.local.batch import LocalBatch
from trainer.engines.local.cache import KeyValueCache
from trainer.engines.local.checkpoint import checkpoint_id, weights_sha256
from trainer.engines.local.model import TinyTransformer
from trainer.engines.local.tokenizer import WordTokenizer
from trainer.errors import InputError
from trainer.rollout.policy import Conversation

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
        """Start a batch; what its episodes have in common is computed once.

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
