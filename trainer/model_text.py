"""What a model wrote, as values that every file, hash and socket can hold.

A model may write half of a surrogate pair, ``NaN``, a number of ten thousand digits or a thousand
brackets. None of it may end a run: it is read here, once, before anything is recorded.
"""

from __future__ import annotations

import math
from typing import Any

from trainer.files import parse_json

#: nesting that a reader must bear; the interpreter's own limit depends on who calls
DEEPEST = 64
#: integers that every reader of JSON takes
LARGEST = 2**63 - 1


def whole_text(text: str) -> str:
    """``text`` with surrogate pairs joined and each lone half replaced by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def read_object(text: str) -> dict[str, Any] | None:
    """The JSON object that a model wrote, or None when the text is no JSON object.

    Numbers that JSON does not have, integers beyond ``LARGEST`` and nesting deeper than ``DEEPEST``
    make it none; halves of surrogate pairs are replaced.
    """
    try:
        value = whole(parse_json(text))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def whole(value: Any, depth: int = 0) -> Any:
    """A JSON value with ``whole_text`` applied to every text.

    Raises ValueError for what no document holds: an infinite number, an integer beyond ``LARGEST``,
    nesting beyond ``DEEPEST``.
    """
    if depth > DEEPEST:
        raise ValueError("nested too deep")
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, list):
        return [whole(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {whole_text(key): whole(item, depth + 1) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number is too large")
    if isinstance(value, int) and abs(value) > LARGEST:
        raise ValueError("an integer is too large")
    return value
