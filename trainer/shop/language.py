"""How a world speaks, where it does not speak the standard text with function tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from trainer.shop.types import Task


class WordLanguage(Protocol):
    """A closed vocabulary of words in which a small model reads pages and writes tool calls."""

    def vocabulary(self) -> tuple[str, ...]:
        """Every word the world can produce or read."""
        ...

    def render(self, state: Mapping[str, Any]) -> str:
        """The page as words separated by single spaces."""
        ...

    def decode(self, words: Sequence[str], state: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Tool name and arguments of what the model wrote. Raises ToolCallError."""
        ...

    def prompt(self, task: Task, chunk_texts: Sequence[str]) -> list[tuple[str, str]]:
        """(role, text) of the first messages, without the first observation."""
        ...

    def feedback(self, code: str) -> str:
        """The answer to a turn that could not be read as an action."""
        ...
