"""What a page asks of the database."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

LIMITS = ("SAVEPOINT", "SET LOCAL")


def questions(captured: Iterable[dict[str, Any]]) -> list[str]:
    """The statements that ask; PostgreSQL's limits of time take statements of their own."""
    return [q["sql"] for q in captured if not any(word in q["sql"] for word in LIMITS)]
