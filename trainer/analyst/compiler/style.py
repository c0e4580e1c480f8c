"""How a candidate's parts become the one text that a prompt shows.

``ProcedureStyle`` is the published layout, a heading and four labelled parts (gate-analysis.md §0).
``SentenceStyle`` is for worlds that read single words: one sentence of words they know.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from trainer.analyst.words import words_of

Item = Mapping[str, Any]


class Style(Protocol):
    """Renders a compiled item and says what it cannot render."""

    def render(self, item: Item) -> str: ...
    def errors(self, item: Item) -> list[str]: ...
    def identity(self) -> dict[str, Any]: ...


class ProcedureStyle:
    """Title, when it applies, numbered procedure, how to verify, what to avoid."""

    def render(self, item: Item) -> str:
        steps = [f"  {number}. {step}" for number, step in enumerate(item["procedure"], 1)]
        return "\n".join(
            [
                f"### {item['title']}",
                "",
                f"- Applies when: {item['applicable_when']}",
                "- Procedure:",
                *steps,
                f"- Verify: {item['verification']}",
                f"- Avoid: {item['common_failure']}",
            ]
        )

    def errors(self, item: Item) -> list[str]:
        return []

    def identity(self) -> dict[str, Any]:
        return {"style": "procedure-v1"}


@dataclass(frozen=True, slots=True)
class SentenceStyle:
    """The procedure as one sentence. ``vocabulary`` holds every word the policy can read."""

    vocabulary: Collection[str]
    longest: int = 20

    def render(self, item: Item) -> str:
        return " ".join(step.strip() for step in item["procedure"])

    def errors(self, item: Item) -> list[str]:
        words = words_of(self.render(item))
        unknown = sorted({word for word in words if word not in self.vocabulary})
        errors = []
        if unknown:
            errors.append(f"procedure uses words the policy cannot read: {', '.join(unknown)}")
        if len(words) > self.longest:
            errors.append(f"procedure has {len(words)} words, at most {self.longest} are read")
        return errors

    def identity(self) -> dict[str, Any]:
        return {"style": "sentence-v1", "longest": self.longest}
