"""A folder with everything a small round needs, and the command line as a function."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainer.cli.main import main
from trainer.shop.world import World
from trainer.skills.bank import write_bank
from trainer.skills.curriculum import write_curriculum
from trainer.skills.curriculum_build import build_curriculum
from trainer.skills.types import Chunk

CHUNKS = (
    Chunk("brand", "put the preferred brand in the query", metadata={"estimated_effect": 0.2}),
    Chunk("calm", "think slowly", metadata={"estimated_effect": 0.1}),
)


@pytest.fixture(scope="session")
def checkpoint(mini: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained policy for the embedded world."""
    import torch

    from trainer.engines.local.checkpoint import save_checkpoint
    from trainer.engines.local.model import ModelConfig, TinyTransformer
    from trainer.engines.local.tokenizer import WordTokenizer

    assert mini.language is not None
    torch.manual_seed(0)
    tokenizer = WordTokenizer(mini.language.vocabulary())
    folder = tmp_path_factory.mktemp("checkpoint")
    save_checkpoint(
        folder,
        TinyTransformer(ModelConfig(len(tokenizer), width=32, layers=1, heads=2)),
        tokenizer,
        catalogue_sha256=mini.identity()["catalogue_sha256"],
        recipe={},
        record={},
    )
    return folder


@dataclass(frozen=True)
class RoundInputs:
    """A folder with bank, curriculum and configurations of a small round."""

    folder: Path
    checkpoint: Path

    def config(self, name: str, **changes: Any) -> Path:
        base: dict[str, dict[str, Any]] = {
            "train": {
                "stage": "train",
                "name": "t",
                "round_id": "round-000",
                "output_dir": "train",
                "policy": {"checkpoint": str(self.checkpoint), "threads": 1},
                "skillbank": "bank.json",
                "curriculum": "curriculum.json",
                "steps": 2,
                "rollout": {"groups_per_wave": 3, "groups_kept": 2, "episodes_per_group": 2},
            },
            "evaluate": {
                "stage": "evaluate",
                "name": "bare",
                "output_dir": "bare",
                "policy": {"checkpoint": str(self.checkpoint), "threads": 1},
                "tasks": {"split": "val", "limit": 6},
                "batch_size": 4,
            },
            "analyse": {
                "stage": "analyse",
                "name": "a",
                "round_id": "round-000",
                "output_dir": "analysis",
                "training_dir": "train",
                "skillbank": "bank.json",
                "proposal_checkpoint": "round-000-checkpoint",
            },
        }
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump({**base[name], **changes}))
        return path


@pytest.fixture
def inputs(tmp_path: Path, checkpoint: Path) -> RoundInputs:
    bank = write_bank(tmp_path / "bank.json", CHUNKS, bank_version="test", metadata={})
    curriculum = build_curriculum(
        bank, round_id="round-000", skill_free_probability=0.2, rho_min=0.2, rho_max=0.9
    )
    write_curriculum(tmp_path / "curriculum.json", curriculum)
    return RoundInputs(tmp_path, checkpoint)


Command = Callable[..., tuple[int, Any, str]]


@pytest.fixture
def command(mini: World, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> Command:
    """Runs a command in this process: exit code, parsed stdout, stderr. The world is built once."""
    from trainer.cli import analyst, evaluate, train
    from trainer.preflight import checks

    for module in (analyst, evaluate, train):  # the handlers of the test run stay as they are
        monkeypatch.setattr(module, "listen_for_stop", lambda: None)
    monkeypatch.setattr(checks, "load_world", lambda profile, **_files: mini)
    monkeypatch.setattr(evaluate, "load_world", lambda profile, **_files: mini)

    def run(*arguments: object) -> tuple[int, Any, str]:
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, json.loads(captured.out) if captured.out else None, captured.err

    return run
