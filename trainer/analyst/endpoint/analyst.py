"""The analyst on a language model."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from trainer.analyst.card_store import CardStore
from trainer.analyst.cards import Investigation, Stage, Submission
from trainer.analyst.endpoint.line import Line
from trainer.analyst.endpoint.live import LiveShop
from trainer.analyst.endpoint.prompts import ANALYST, REMINDERS, WORD_WORLD
from trainer.analyst.endpoint.session import Session, TurnLimitReached
from trainer.analyst.endpoint.tools import submit_card_tool
from trainer.analyst.settings import LimitSettings
from trainer.canonical import fingerprint, safe_name
from trainer.rollout.traces import without_times
from trainer.shop.session import ShopSession
from trainer.shop.world import World
from trainer.skills.types import Chunk

LONGEST_SENTENCE = 20


class EndpointAnalyst:
    """Analyses traces of one world against one bank; every conversation has a transcript of its
    own, named by the trace, its input, and how often the model ran out of turns on it before."""

    provenance = "endpoint"

    def __init__(
        self,
        world: World,
        chunks: Sequence[Chunk],
        line: Line,
        *,
        limits: LimitSettings,
        store: CardStore,
        stage: Stage = "online",
    ) -> None:
        self._world = world
        self._chunks = chunks
        self._line = line
        self._limits = limits
        self._store = store
        self._stage: Stage = stage
        self._slots = threading.BoundedSemaphore(limits.environment_slots)
        self.system = system_prompt(ANALYST, WORD_WORLD, world)

    def identity(self) -> Mapping[str, Any]:
        """Model and sampling, prompts, tools and the stage."""
        return {
            **self._line.settings.identity(),
            "stage": self._stage,
            "prompt_sha256": fingerprint([self.system, REMINDERS]),
            "tools_sha256": fingerprint(submit_card_tool()),
        }

    def analyse(self, trace: Mapping[str, Any]) -> tuple[Submission, Investigation]:
        """Hold the conversation, or as much of it as was not held before."""
        with self._slots:
            session = Session(
                conversation=self._line.conversation(
                    self._transcript(trace), self._line.settings.session_max_tokens
                ),
                shop=LiveShop(lambda: ShopSession(self._world, trace["job"]["task_id"])),
                system=self.system,
                turns=self._limits.turns,
            )
            return session.run(trace, self._chunks, self._stage)

    def _transcript(self, trace: Mapping[str, Any]) -> str:
        source = trace["episode_id"]
        chunks = [chunk.to_record() for chunk in self._chunks]
        key = fingerprint([without_times(trace), chunks, self.identity(), self._limits.turns])[:8]
        spent = self._store.errors(source, TurnLimitReached.__name__)
        return f"{safe_name(source)}.{key}.{spent + 1}"


def system_prompt(text: str, for_words: str, world: World) -> str:
    """The system prompt, with the vocabulary where the policy reads single words only."""
    if world.language is None:
        return text
    vocabulary = " ".join(word for word in world.language.vocabulary() if word.isalpha())
    return f"{text}\n\n{for_words.format(longest=LONGEST_SENTENCE, vocabulary=vocabulary)}"
