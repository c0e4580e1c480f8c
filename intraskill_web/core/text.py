"""Text that a database can hold: PostgreSQL takes no NUL, in texts or in JSON."""

from __future__ import annotations

from typing import Any

SHOWN = "\ufffd"  # what stands for a NUL; hashes are those of the original


def storable(text: str) -> str:
    """``text`` with a visible mark for every NUL."""
    return text.replace("\x00", SHOWN)


def storable_json(value: Any) -> Any:
    """A JSON value with storable texts and keys."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(str(key)): storable_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable_json(item) for item in value]
    return value
