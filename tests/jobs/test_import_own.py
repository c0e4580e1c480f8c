"""A run folder of our own, imported: rows up to where it ends, and what is not there is named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from intraskill_web.experiments.models import Experiment
from jobs.imports import run
from trainer.experiment_config import ExperimentConfig
from trainer.files import write_json
from trainer.skills.bank import load_bank
from trainer.skills.curriculum import write_curriculum
from trainer.skills.curriculum_build import build_curriculum

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run that ended while the starting checkpoint was being measured."""
    text = (REPOSITORY / "configs/mini/quick.yaml").read_text(encoding="utf-8")
    config = ExperimentConfig.model_validate(yaml.safe_load(text) | {"name": "elsewhere"})
    made = tmp_path / "elsewhere"
    round_ = made / "round-000"
    round_.mkdir(parents=True)
    write_json(made / "experiment.json", config.model_dump(mode="json"))
    shutil.copyfile(REPOSITORY / "configs/mini/skillbank.json", round_ / "skillbank.json")
    curriculum = build_curriculum(
        load_bank(round_ / "skillbank.json"),
        round_id="round-000",
        skill_free_probability=0.2,
        rho_min=0.2,
        rho_max=0.9,
    )
    write_curriculum(round_ / "curriculum.json", curriculum)
    return made


@pytest.mark.django_db
def test_an_unfinished_run_is_imported_as_stopped_and_says_what_it_lacks(
    home: Path, folder: Path
) -> None:
    result = run.import_run(folder, "brought")
    assert result["missing"] == [
        "round-000/baseline/bare/summary.json",
        "round-000/baseline/full/summary.json",
    ]
    assert (result["rounds"], result["skill_versions"], result["mismatched"]) == (1, 0, [])
    experiment = Experiment.objects.get(name="brought")
    assert experiment.state == "stopped"
    assert [s.state for s in experiment.rounds.get().stages.all()] == [""] * 6
    assert (experiment.folder / "round-000/curriculum.json").is_file()
    assert run.import_run(folder, "brought") == result


@pytest.mark.django_db
def test_a_damaged_file_is_named_and_the_rest_is_imported(home: Path, folder: Path) -> None:
    round_ = folder / "round-000"
    for arm in ("bare", "full"):
        (round_ / "baseline" / arm).mkdir(parents=True)
        for name in ("manifest.json", "summary.json"):
            (round_ / "baseline" / arm / name).write_text("null\n")
    result = run.import_run(folder, "brought")
    (wrong,) = result["mismatched"]
    assert wrong["path"] == "round-000/freeze"
    assert wrong["problem"].startswith("holds something else than it should: TypeError")
    assert result["rounds"] == 1


@pytest.mark.django_db
def test_a_folder_in_the_place_of_a_file_is_named(home: Path, folder: Path) -> None:
    (folder / "round-000" / "baseline" / "bare" / "traces.jsonl").mkdir(parents=True)
    result = run.import_run(folder, "brought")
    (wrong,) = result["mismatched"]
    assert wrong["path"] == "round-000/freeze" and "IsADirectoryError" in wrong["problem"]
    assert result["rounds"] == 1
