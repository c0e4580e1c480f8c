"""A finished round in which nothing was ever bought, and the configuration that analyses it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.fakes import FakeEngine, FakePolicy, script
from tests.trainer.grpo.test_training_round import curriculum, training_run
from trainer.config import AnalystConfig
from trainer.shop.world import World
from trainer.skills.bank import write_bank

Configure = Callable[..., AnalystConfig]


@pytest.fixture(scope="session")
def failed_round(mini: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every group of the round failed with every text, so that every group waits."""
    folder = tmp_path_factory.mktemp("failed-round")
    engine = FakeEngine()
    engine.policy = FakePolicy(script("search boots", "next"))
    run = training_run(mini, folder / "train", engine=engine)
    replace(run, config=run.config.model_copy(update={"steps": 1})).run()
    write_bank(folder / "bank.json", curriculum().chunks, bank_version="t", metadata={})
    return folder


@pytest.fixture
def round_folder(
    mini: World, failed_round: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A copy of that round; whoever analyses it in this process reads the world that is here."""
    monkeypatch.setattr("trainer.analyst.desk.load_world", lambda *_args, **_kwargs: mini)
    shutil.copytree(failed_round, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture
def configure() -> Configure:
    """The configuration of an analysis in a folder."""

    def make(folder: Path, analyst: Any = "none", **changes: Any) -> AnalystConfig:
        return AnalystConfig(
            stage="analyse",
            name="a",
            round_id="round-000",
            output_dir=folder / "analysis",
            training_dir=folder / "train",
            skillbank=folder / "bank.json",
            proposal_checkpoint="checkpoint-1",
            analyst=analyst,
            **changes,
        )

    return make
