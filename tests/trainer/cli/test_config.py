"""Configuration files: what is accepted, and what a mistake is answered with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trainer.config import EvaluateConfig, TrainConfig
from trainer.config_files import load_config, parse_config, read_yaml
from trainer.errors import InputError
from trainer.experiment_config import ExperimentConfig
from trainer.gate.config import GateConfig

ROOT = Path(__file__).parents[3]
START = {"skillbank": "bank.json", "checkpoint": "checkpoint"}
TRAIN: dict[str, Any] = {
    "stage": "train",
    "name": "t",
    "round_id": "round-000",
    "output_dir": "train",
    "policy": {"checkpoint": "start"},
    "skillbank": "bank.json",
    "curriculum": "curriculum.json",
}
EVALUATE: dict[str, Any] = {
    "stage": "evaluate",
    "name": "e",
    "output_dir": "out",
    "policy": {"checkpoint": "start"},
}


@pytest.mark.parametrize("name", ["demo", "quick"])
def test_the_shipped_experiments_load(name: str) -> None:
    config = load_config(ROOT / "configs" / "mini" / f"{name}.yaml", ExperimentConfig)
    assert config.name == name
    assert config.start.skillbank.parent == ROOT / "configs" / "mini"
    kept, updates = config.train.rollout.groups_kept, config.train.optimiser.updates_per_step
    assert kept % updates == 0


def test_the_demo_is_the_round_that_was_promised() -> None:
    config = load_config(ROOT / "configs" / "mini" / "demo.yaml", ExperimentConfig)
    rollout = config.train.rollout
    assert (config.train.steps, rollout.groups_per_wave, rollout.groups_kept) == (20, 32, 16)
    assert rollout.episodes_per_group == 8
    assert config.evaluation.bare_tasks == 1600
    assert config.train.optimiser.learning_rate == 8e-5
    assert config.gate.profile == "published"


def test_a_new_experiment_gets_the_standard_gate_and_can_set_all_of_it() -> None:
    here = Path("experiment.yaml")
    plain = parse_config({"name": "x", "start": START}, ExperimentConfig, file=here)
    assert plain.gate.profile == "standard"
    gate = {"tasks": 800, "min_coverage": 0.9, "standard": {"looks": 2, "retire_margin": 0.03}}
    config = parse_config({"name": "x", "start": START, "gate": gate}, ExperimentConfig, file=here)
    assert (config.gate.tasks, config.gate.min_coverage) == (800, 0.9)
    assert (config.gate.standard.looks, config.gate.standard.retire_margin) == (2, 0.03)
    assert config.gate.standard.adopt_alpha == 0.05


def test_a_gate_has_the_same_rule_by_default_wherever_it_is_configured() -> None:
    gate = {
        "stage": "gate",
        "name": "g",
        "output_dir": "gate",
        "candidate_pool": "pool.json",
        "bare_run": "bare",
        "policy": {"checkpoint": "start"},
    }
    alone = parse_config(gate, GateConfig, file=ROOT / "g.yaml")
    whole = parse_config({"name": "x", "start": START}, ExperimentConfig, file=ROOT / "x.yaml")
    assert alone.profile == whole.gate.profile == "standard"
    published = load_config(ROOT / "configs" / "slime" / "gate.yaml", GateConfig)
    assert published.profile == "published"


def test_relative_paths_start_at_the_file(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "train.yaml"
    config = parse_config({**TRAIN, "task_data": "/data/tasks.jsonl"}, TrainConfig, file=path)
    assert config.output_dir == tmp_path / "sub" / "train"
    assert config.policy.checkpoint == tmp_path / "sub" / "start"
    assert str(config.task_data) == "/data/tasks.jsonl"


@pytest.mark.parametrize(
    ("model", "value", "field", "text"),
    [
        (TrainConfig, {**TRAIN, "stage": "evaluate"}, "stage", "train"),
        (TrainConfig, {**TRAIN, "stepz": 3}, "stepz", "keys known here: .*steps"),
        (TrainConfig, {**TRAIN, "steps": 0}, "steps", "greater than or equal to 1"),
        (TrainConfig, {**TRAIN, "name": "a b"}, "name", "only letters, digits"),
        (TrainConfig, {**TRAIN, "policy": {}}, "policy.checkpoint", "Add this key"),
        (
            TrainConfig,
            {**TRAIN, "rollout": {"group_kept": 4}},
            "rollout.group_kept",
            "keys known here: .*groups_kept",
        ),
        (
            TrainConfig,
            {**TRAIN, "rollout": {"groups_kept": 64}},
            "rollout",
            "groups_per_wave must be at least groups_kept",
        ),
        (
            TrainConfig,
            {**TRAIN, "optimiser": {"updates_per_step": 3}},
            None,
            "a group may not straddle two updates",
        ),
        (
            TrainConfig,
            {**TRAIN, "optimiser": {"learning_rate": float("nan")}},
            "optimiser.learning_rate",
            "finite|greater",
        ),
        (
            EvaluateConfig,
            {**EVALUATE, "skills": {"provider": "bank"}},
            "skills",
            "bank must be set",
        ),
        (
            EvaluateConfig,
            {**EVALUATE, "tasks": {"limit": 1, "sample_size": 1}},
            "tasks",
            "not both",
        ),
        (
            ExperimentConfig,
            {"name": "x", "start": START, "curriculum": {"rho_max": 1.5}},
            "curriculum.rho_max",
            "less than or equal to 1",
        ),
        *(
            (ExperimentConfig, {"name": "x", "start": START, "gate": gate}, field, text)
            for gate, field, text in [
                ({"profile": "bayesian"}, "gate.profile", "'published' or 'standard'"),
                ({"profile": "published", "tasks": 5}, "gate", "plays the tasks of the bare"),
                ({"min_coverage": 1.1}, "gate.min_coverage", "less than or equal to 1"),
                ({"standard": {"looks": 0}}, "gate.standard.looks", "greater than or equal to 1"),
                ({"standard": {"look": 2}}, "gate.standard.look", "keys known here: .*looks"),
                ({"standard": {"adopt_alpha": 0.9}}, "gate.standard.adopt_alpha", "less than"),
                (
                    {"standard": {"doubt_confidence": 0.99}},
                    "gate.standard",
                    "keep_confidence must be at least",
                ),
                (
                    {"standard": {"equivalence_margin": 0.1}},
                    "gate.standard",
                    "retire_margin must be at least",
                ),
                (
                    {"standard": {"adopt_familywise": 0.01}},
                    "gate.standard",
                    "at least adopt_alpha",
                ),
                ({"standard": {"confirm_tasks": 1}}, "gate.standard", "at least 2"),
                ({"standard": {"redraws": 0}}, "gate.standard.redraws", "greater than"),
            ]
        ),
    ],
)
def test_a_mistake_names_file_field_value_and_remedy(
    tmp_path: Path, model: Any, value: dict[str, Any], field: str | None, text: str
) -> None:
    with pytest.raises(InputError, match=text) as caught:
        parse_config(value, model, file=tmp_path / "config.yaml")
    assert caught.value.file == str(tmp_path / "config.yaml")
    assert caught.value.field == field
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "not valid YAML"),
        ("a: 2026-13-99", "not valid YAML: month must be"),
        ("a: " + "[" * 5000, "not valid YAML"),
        ('a: "\\0"', "no file or database holds"),
        ('a: "\\ud800"', "no file or database holds"),
        ("a: &a [*a]", "more than 200000 values"),
        ("- a", "a mapping"),
        (None, "no such configuration file"),
    ],
)
def test_files_that_are_no_configuration(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "config.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_yaml(path)


def test_another_seed_changes_masks_too_and_nothing_else(tmp_path: Path) -> None:
    config = parse_config({"name": "x", "start": START}, ExperimentConfig, file=tmp_path / "x.yaml")
    one, two = config.with_seed(1), config.with_seed(2)
    assert (one.seed, two.seed) == (1, 2)
    assert one.mask_seed != two.mask_seed
    assert one == config.with_seed(1)
    assert one.model_copy(update={"seed": 2, "mask_seed": two.mask_seed}) == two


def test_settings_cannot_be_changed_after_loading(tmp_path: Path) -> None:
    config = parse_config(TRAIN, TrainConfig, file=tmp_path / "x.yaml")
    with pytest.raises(ValueError, match="frozen"):
        config.steps = 3  # type: ignore[misc]
