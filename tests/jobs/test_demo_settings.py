"""Which settings a demonstration runs with, and how its end is told."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from django.conf import settings

from jobs.demo import configuration
from jobs.summary import told
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


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_that_no_database_holds_is_refused(seed: int) -> None:
    with pytest.raises(InputError, match=f"--seed: .*found {seed}"):
        configuration(quick=True, seed=seed)


def test_a_profile_that_the_file_does_not_allow_is_named_by_flag_and_field(tmp_path: Path) -> None:
    text = (MINI / "demo.yaml").read_text(encoding="utf-8")
    settings_ = yaml.safe_load(text)
    settings_["start"] = {key: str(MINI / path) for key, path in settings_["start"].items()}
    settings_["gate"] = {"profile": "standard", "tasks": 40}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(settings_), encoding="utf-8")
    with pytest.raises(InputError, match="tasks must be null in the published profile") as caught:
        configuration(path=tmp_path / "mine.yaml", profile="published", threads=1)
    assert caught.value.field == "--profile (gate.profile)"
    assert caught.value.value == "published"


def test_the_summary_of_the_demo_is_a_few_lines_for_people() -> None:
    verdicts = {"a": {"status": "selected"}, "b": {"status": "retired"}}
    figures = {"round": 0, "bare_success": 0.5, "full_success": None, "bank_size": 2,
               "selected_size": 1, "gate": {"coefficients": verdicts}}  # fmt: skip
    arms = {"bare_success": 0.25, "full_success": 0.75}
    text = told({"experiment": "small", "state": "succeeded", "seconds": 75.0, "start": arms,
                 "rounds": [figures], "test": None})  # fmt: skip
    assert text.splitlines() == [
        "small: succeeded in 1 min 15 s",
        "  start    success without the skill 0.250, with it 0.750",
        "  round 0  success without the skill 0.500, with it \u2013"
        " · chunks 2 → 1 (1 selected, 1 retired)",
    ]
