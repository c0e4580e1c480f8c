"""The opt-in curricula: q that follows the gap, and a budget of chunks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trainer.skills.test_bank import GOLDEN
from tests.trainer.skills.test_curriculum import golden
from trainer.cli.main import main
from trainer.errors import InputError
from trainer.experiment_config import ExperimentConfig
from trainer.files import write_json, write_jsonl
from trainer.skills.curriculum_budget import scale_for
from trainer.skills.curriculum_controller import Controller, Gap, measured_gap

START = Gap(0.4, 0.0, 400)


def test_q_rises_as_the_gap_closes_by_at_most_a_step() -> None:
    controller = Controller(0.2, 0.6, 0.1)
    gaps = [START, Gap(0.3, 0.0, 400), Gap(0.1, 0.0, 400), Gap(0.0, 0.0, 400), Gap(0.0, 0.0, 400)]
    assert controller.course(gaps) == pytest.approx([0.2, 0.3, 0.4, 0.5, 0.6])
    assert controller.course([START]) == [0.2]
    assert controller.course([]) == [0.2]


def test_q_follows_its_target_where_the_step_allows_it() -> None:
    # closed = 1 - 0.3/0.4 = 0.25; target = 0.2 + 0.4 * 0.25 = 0.3
    assert Controller(0.2, 0.6, 1.0).course([START, Gap(0.3, 0.0, 9)])[-1] == pytest.approx(0.3)


def test_noise_alone_raises_nothing() -> None:
    assert Controller(0.2, 0.6, 0.1).course([START, Gap(0.35, 0.06, 9)]) == [0.2, 0.2]


def test_a_skill_that_never_helped_leaves_q() -> None:
    assert Controller(0.2, 0.6, 0.1).course([Gap(-0.1, 0.0, 9), Gap(-0.2, 0.0, 9)]) == [0.2, 0.2]


@given(
    st.lists(
        st.builds(Gap, st.floats(-1, 1), st.floats(0, 0.2), st.just(400)), min_size=1, max_size=8
    ),
    st.floats(0.01, 1),
    st.floats(0.01, 1),
)
def test_q_never_falls_never_leaves_its_bounds_and_is_never_zero(
    gaps: list[Gap], q: float, step: float
) -> None:
    course = Controller(q, 1.0, step).course(gaps)
    assert len(course) == len(gaps)
    assert course == sorted(course)
    assert q <= course[0] and course[-1] <= 1.0 + 1e-12


@pytest.mark.parametrize("bounds", [(0.0, 0.5), (0.6, 0.5), (0.2, 1.5)])
def test_bounds_that_make_no_sense_are_refused(bounds: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="0 < q <= q_max"):
        Controller(*bounds, 0.1)


def evaluation(folder: Path, full: list[int], bare: list[int]) -> Path:
    """Both arms with these successes by task."""
    for arm, successes in (("full", full), ("bare", bare)):
        rows = [trace(task, success) for task, success in enumerate(successes)]
        write_jsonl(folder / arm / "traces.jsonl", rows)
    return folder


def trace(task: int, success: int) -> dict[str, Any]:
    reward = {"reward": float(success), "r_strict": 0.0, "r_success": float(success)}
    return {
        "job": {"task_id": task, "sample_id": 0},
        "final": {"done": True, "reward_detail": reward, **reward},
    }


def test_the_gap_is_paired_over_common_tasks(tmp_path: Path) -> None:
    folder = evaluation(tmp_path, [1, 1, 0, 1], [0, 1, 0, 0, 1, 1])
    gap = measured_gap(folder)
    assert (gap.mean, gap.n) == (0.5, 4)
    assert gap.se == pytest.approx((4 * 0.25 / 3) ** 0.5 / 2)


def test_a_gap_of_nothing_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="0 tasks in common") as refusal:
        measured_gap(tmp_path / "absent")
    assert refusal.value.file == str(tmp_path / "absent")


EFFECTS = [0.075, 0.04, 0.03, 0.002]


@pytest.mark.parametrize("expected", [0.9, 1.5, 2.0, 3.0, 3.5])
def test_the_budget_is_met(expected: float) -> None:
    scale = scale_for(EFFECTS, held=0, expected=expected, rho_min=0.2, rho_max=0.9)
    got = sum(min(0.9, max(0.2, 0.2 + 0.7 * effect / scale)) for effect in EFFECTS)
    assert got == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("expected", "reached"), [(0.1, 0.8), (99.0, 3.6)])
def test_a_budget_out_of_reach_is_met_as_near_as_can_be(expected: float, reached: float) -> None:
    scale = scale_for(EFFECTS, held=0, expected=expected, rho_min=0.2, rho_max=0.9)
    got = sum(min(0.9, max(0.2, 0.2 + 0.7 * effect / scale)) for effect in EFFECTS)
    assert got == pytest.approx(reached, abs=1e-6)


def test_the_document_says_what_was_asked_for_and_its_hash_covers_it() -> None:
    plain = golden(schema="v2")
    tight = golden(schema="v2", expected_chunks=0.8)
    assert sum(tight.rho.values()) == pytest.approx(0.8)
    mapping = tight.document["source"]["probability_mapping"]
    assert (mapping["scale_source"], mapping["expected_chunks"]) == ("expected_chunks", 0.8)
    assert tight.state_id != plain.state_id


def test_the_published_schema_knows_neither() -> None:
    with pytest.raises(InputError, match="fixed q"):
        golden(expected_chunks=1.0)


def test_the_command_reads_the_gaps_of_earlier_rounds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = evaluation(tmp_path / "start", [1] * 10, [0] * 10)
    first = evaluation(tmp_path / "first", [1] * 10, [1] * 10)
    write_json(tmp_path / "bank.json", GOLDEN)
    arguments = ["curriculum", "build", str(tmp_path / "bank.json"), str(tmp_path / "c.json")]
    arguments += ["--round-id", "round-001", "--q", "0.2", "--rho-min", "0.2", "--rho-max", "0.8"]
    arguments += ["--q-max", "0.6", "--gaps", str(start), str(first)]
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["q"] == pytest.approx(0.3)
    record = json.loads((tmp_path / "c.json").read_text())["source"]["q_controller"]
    assert record["course"] == pytest.approx([0.2, 0.3])
    assert [gap["gap"] for gap in record["gaps"]] == [1.0, 0.0]


def test_the_defaults_are_the_published_ones_and_slips_are_refused() -> None:
    start = {"skillbank": "/s0.json", "checkpoint": "/c"}
    config = ExperimentConfig.model_validate({"name": "x", "start": start})
    assert config.curriculum.controller == "fixed"
    assert config.curriculum.skill_free_probability == 0.2
    assert config.curriculum.expected_chunks is None
    for bad in (
        {"controller": "gap_closing", "skill_free_probability": 0.0},
        {"expected_chunks": 3, "contribution_scale": 0.1},
    ):
        with pytest.raises(ValueError, match=r"skill-free|not both"):
            ExperimentConfig.model_validate({"name": "x", "start": start, "curriculum": bad})
