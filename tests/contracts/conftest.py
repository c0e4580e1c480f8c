"""The hooks meet doubles always, and a slime checkout where one is at hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.harness import Harness, harness_of


@pytest.fixture(params=["double", "checkout"])
def slime(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Harness]:
    """slime, twice: as doubles and as the checkout in SLIME_SRC."""
    with harness_of(request.param, tmp_path, monkeypatch) as harness:
        yield harness


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Harness]:
    """The checkout in SLIME_SRC only."""
    with harness_of("checkout", tmp_path, monkeypatch) as harness:
        yield harness


@pytest.fixture
def double(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Harness]:
    """The doubles only."""
    with harness_of("double", tmp_path, monkeypatch) as harness:
        yield harness
