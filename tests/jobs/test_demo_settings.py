"""Which settings a demonstration runs with."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings

from jobs.demo import configuration
from trainer.errors import InputError

MINI = Path(settings.BASE_DIR) / "configs" / "mini"


def test_a_file_names_the_demonstration_and_its_settings() -> None:
    made = configuration(path=MINI / "analyst.yaml", seed=5, rounds=2, threads=1)
    assert (made.name, made.rounds, made.seed) == ("analyst-5", 2, 5)
    assert made.analyst.kind == "rule_based"
    assert made.analyst.probe.enabled


def test_without_a_file_it_is_the_shipped_one() -> None:
    assert configuration(threads=1).name == "demo"
    assert configuration(quick=True).name == "quick"


def test_a_file_and_the_tiny_settings_exclude_each_other() -> None:
    with pytest.raises(InputError, match="--quick"):
        configuration(quick=True, path=MINI / "demo.yaml")
    with pytest.raises(InputError, match=r"nobody\.yaml"):
        configuration(path=MINI / "nobody.yaml")
