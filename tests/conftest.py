"""Fixtures that every area shares."""

from __future__ import annotations

from pathlib import Path

import pytest

PUBLISHED = Path(__file__).resolve().parents[2] / "shared" / "published"


@pytest.fixture(scope="session")
def published() -> Path:
    """The published reference data, which is never shipped with the project."""
    if not PUBLISHED.is_dir():
        pytest.skip(f"published reference data not found at {PUBLISHED}")
    return PUBLISHED
