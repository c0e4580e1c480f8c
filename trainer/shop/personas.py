"""User personas: what may be shown, and what identifies them (environment.md §1.5, §1.8)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from trainer.canonical import fingerprint

HIDDEN_KEY = "__reasoning__"


def public_persona(persona: object) -> dict[str, Any]:
    """The persona without hidden reasoning at any depth; empty for anything but an object."""
    cleaned = _without_hidden(persona)
    return cleaned if isinstance(cleaned, dict) else {}


def _without_hidden(value: object) -> object:
    if isinstance(value, Mapping):
        return {
            sys.intern(str(key)): _without_hidden(item)
            for key, item in value.items()
            if key != HIDDEN_KEY
        }
    if isinstance(value, list):
        return [_without_hidden(item) for item in value]
    # Thousands of personas repeat the same words: one copy of each is kept.
    return sys.intern(value) if type(value) is str else value


def persona_fingerprint(persona: object) -> str:
    """SHA-256 of the canonical JSON of the public persona."""
    return fingerprint(public_persona(persona))
