"""A sweep of two arms and two seeds, and what its checks find."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from intraskill_web.experiments.models import Experiment, Sweep
from intraskill_web.experiments.sweeps import base_config, start_sweep
from intraskill_web.monitoring.preflight import machine, run
from intraskill_web.monitoring.preflight.items import Item
from jobs import queue, sweeps

ARMS = ["published", "no-mask"]


class Trainer:
    """Stands for ``python -m trainer check``: red for the arms named in ``red``."""

    def __init__(self) -> None:
        self.looked_at: list[float] = []
        self.red: set[float] = set()

    def __call__(self, file: Path) -> list[Item]:
        rho = yaml.safe_load(file.read_text())["curriculum"]["rho_min"]
        self.looked_at.append(rho)
        return [Item("curriculum", "failed" if rho in self.red else "passed", f"rho {rho}")]


@pytest.fixture
def trainer(
    transactional_db: None, home: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Trainer:
    settings.INTRASKILL_PREFLIGHT = True
    trainer = Trainer()
    monkeypatch.setattr(run, "_trainer", trainer)
    monkeypatch.setattr(run, "kick", lambda _name, action: action())
    monkeypatch.setattr(machine, "MIN_FREE_BYTES", 1)
    monkeypatch.setattr(queue, "enqueue", lambda *_arguments: True)
    return trainer


@pytest.fixture
def pass_by(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Let seconds pass on the clock by which claims are judged."""
    now = [1000.0]
    monkeypatch.setattr(sweeps, "_claims", sweeps.Claims(lambda: now[0]))

    def act(seconds: float) -> None:
        now[0] += seconds

    return act


def start() -> Sweep:
    return start_sweep("s", base_config("mini/quick"), arms=ARMS, seeds=[1, 2])


def begun() -> set[str]:
    return set(Experiment.objects.exclude(rounds=None).values_list("name", flat=True))


ALL = {"s-published-1", "s-no-mask-1", "s-published-2", "s-no-mask-2"}
