"""Canonical JSON and the hashes built on it.

Every frozen document of the method is identified by the SHA-256 of its canonical JSON: keys sorted,
separators without spaces, non-ASCII left as it is, floats in Python's own notation. A string's
fingerprint therefore covers its quotes. Specification: training.md §1.1, gate-analysis.md §0.
"""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime
from pathlib import Path

from trainer.errors import InputError


def canonical_json(value: object) -> str:
    """The one text of a JSON value. Raises ValueError on NaN and infinities."""
    return json.dumps(
        value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
    )


def fingerprint(value: object) -> str:
    """Lower-case hex SHA-256 of the canonical JSON of ``value``.

    Raises InputError on NaN, infinities and halves of surrogate pairs, which no JSON text has.
    """
    try:
        text = canonical_json(value).encode()
    except ValueError as error:
        raise InputError(f"has no canonical JSON: {error}") from error
    return hashlib.sha256(text).hexdigest()


def sha256_file(path: Path) -> str:
    """Lower-case hex SHA-256 of a file's bytes."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def episode_seed(seed: int, task_id: int, sample_id: int) -> int:
    """The 32-bit seed of one episode (environment.md §6.5)."""
    digest = hashlib.sha256(f"{seed}:{task_id}:{sample_id}".encode("ascii")).digest()
    return int.from_bytes(digest[:4], "big")


def safe_name(text: str) -> str:
    """``text`` reduced to letters, digits, dot, underscore and hyphen, fit for a file name."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")
    if not name:
        raise InputError("a name needs at least one letter or digit", field="name", value=text)
    return name


def utc_now() -> str:
    """ISO-8601 UTC with microseconds. Timestamps are kept out of every hash."""
    return datetime.now(UTC).isoformat(timespec="microseconds")
