"""What the active chunks say: which mechanism each is about, and whether it names a deed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from trainer.analyst.rules.mechanisms import Mechanism, mechanism_of
from trainer.analyst.words import words_of
from trainer.shop.mini.words import VERBS
from trainer.skills.types import Chunk

#: what pages of the embedded world call a property that shows on request
HIDDEN_LABEL = "material"
#: words that name something one can do in the shop
DEEDS = frozenset((*VERBS, "query"))


def is_vague(text: str) -> bool:
    """Whether a text names no deed at all: the reader is left to guess what to do."""
    return DEEDS.isdisjoint(words_of(text))


@dataclass(frozen=True, slots=True)
class Advice:
    """What can be said about a mechanism: a text to add, one to rewrite, or nothing and why."""

    operation: Literal["PROPOSE_ADD", "PROPOSE_REWRITE"] | None
    target: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the active chunks once."""

    chunks: Sequence[Chunk]
    mechanisms: Collection[Mechanism]

    def advise(self, mechanism: Mechanism, shown: Collection[str]) -> Advice:
        """What a failure of ``mechanism`` calls for, when ``shown`` chunks were in the prompt."""
        if not mechanism.advice:
            return Advice(None, None, "no text can teach this")
        about = [chunk for chunk in self.chunks if self._about(chunk) == mechanism.name]
        if not about:
            return Advice("PROPOSE_ADD", None, "no active chunk is about this")
        seen = [chunk for chunk in about if chunk.skill_id in shown]
        if not seen:
            return Advice(None, None, f"{about[0].skill_id} is about this, but was not shown")
        vague = [chunk for chunk in seen if is_vague(chunk.content)]
        if len(vague) < len(about):
            clear = next(chunk for chunk in about if chunk not in vague)
            return Advice(None, None, f"{clear.skill_id} says this clearly")
        return Advice("PROPOSE_REWRITE", vague[0].skill_id, "the active chunk names no deed")

    def _about(self, chunk: Chunk) -> str | None:
        mechanism = mechanism_of(chunk.content, self.mechanisms, HIDDEN_LABEL)
        return None if mechanism is None else mechanism.name


def shown_in(trace: Mapping[str, Any]) -> list[str]:
    """Ids of the chunks in a trace's prompt."""
    return [chunk["skill_id"] for chunk in trace["selected_skills"]]
