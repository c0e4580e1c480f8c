"""A chunk of procedural text, as banks store it and prompts show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainer.canonical import fingerprint


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk: a logical id that survives rewrites, and the text it stands for now."""

    skill_id: str
    content: str
    version: str = "1"
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def content_sha256(self) -> str:
        """Identity of the text: the fingerprint of the string, quotes included."""
        return fingerprint(self.content)

    def to_record(self) -> dict[str, Any]:
        """The chunk as traces record it under ``selected_skills``."""
        return {
            "skill_id": self.skill_id,
            "content": self.content,
            "version": self.version,
            "metadata": dict(self.metadata),
            "content_sha256": self.content_sha256,
        }
