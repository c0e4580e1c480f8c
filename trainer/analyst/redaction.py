"""Ids taken out of what an analyst reads and of what its cards keep (gate-analysis.md §11.2)."""

from __future__ import annotations

import re

_PATTERNS = (
    re.compile(r"\bASIN\b[\s:：#]*[A-Z0-9]*", re.IGNORECASE),
    re.compile(r"\d{10,}"),
    re.compile(r"task[-_ ]?\d+", re.IGNORECASE),
)
REDACTED = "[redacted]"


def redact(text: str) -> str:
    """``text`` without mentions of an ASIN, runs of ten digits or more, and task ids."""
    for pattern in _PATTERNS:
        text = pattern.sub(REDACTED, text)
    return text
