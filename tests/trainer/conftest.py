"""The embedded world, built once for all tests of the trainer."""

from __future__ import annotations

import pytest

from trainer.shop.world import World, load_world


@pytest.fixture(scope="session")
def mini() -> World:
    """The ``mini`` world; read-only."""
    return load_world("mini")
