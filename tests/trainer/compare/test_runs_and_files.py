from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trainer.gate.builders import Json, plan_of, trace_of, write_run
from trainer.cli.main import main
from trainer.compare.outcomes import Arm, arms_of_file, arms_of_runs
from trainer.compare.report import compare, markdown
from trainer.errors import InputError
from trainer.files import write_json

TASKS = [1, 2, 3, 4]
BANK: Json = {"provider": "json_skillbank"}


def run_of(folder: Path, rewards: list[float], skills: Json | None = None, **change: Any) -> Path:
    plan = plan_of(TASKS[: len(rewards)], skills)
    for section, value in change.items():
        plan[section] = {**plan[section], **value}
    traces = [
        {**trace_of(plan, task, reward), "steps": steps(task), "duration_ms": 5.0}
        for task, reward in zip(TASKS, rewards, strict=False)
    ]
    return write_run(folder, plan, traces)


def steps(task: int) -> list[Json]:
    valid: Json = {"action_feedback": {"valid": True}}
    invalid: Json = {"action_feedback": {"valid": False}}
    return [
        {"model": {"usage": {"prompt_tokens": 10}}, "environment": valid},
        {"model": {"usage": {"prompt_tokens": 20}}, "environment": invalid if task == 1 else valid},
        {"model": {"usage": {}}, "environment": None, "protocol_error": "x"},
    ]


def test_two_runs_are_compared_task_by_task(tmp_path: Path) -> None:
    a = run_of(tmp_path / "a", [0.0, 0.5, 1.0, 0.25])
    b = run_of(tmp_path / "b", [0.25, 0.75, 1.0, 0.5], BANK)
    document = compare(*arms_of_runs([a, b]))
    reward = document["metrics"]["reward"]
    assert (reward["a_mean"], reward["b_mean"], reward["difference"]) == (0.4375, 0.625, 0.1875)
    assert document["metrics"]["steps"]["a_mean"] == 3.0
    assert document["metrics"]["prompt_tokens"]["a_mean"] == 30.0
    assert document["metrics"]["protocol_error_rate"]["a_mean"] == pytest.approx(1 / 3)
    assert document["metrics"]["invalid_action_rate"]["a_mean"] == pytest.approx(0.5 / 4)
    assert document["transitions"]["both_success"] == 1
    assert "| reward | 0.4375 | 0.6250 | +0.1875 |" in markdown(document)


def test_a_constant_shift_gives_a_point(tmp_path: Path) -> None:
    a = run_of(tmp_path / "a", [0.0, 0.25, 0.5, 0.25])
    b = run_of(tmp_path / "b", [0.25, 0.5, 0.75, 0.5], BANK)
    assert compare(*arms_of_runs([a, b]))["metrics"]["reward"]["interval"] == [0.25, 0.25]


def test_another_temperature_aborts_and_another_checkpoint_may_be_allowed(tmp_path: Path) -> None:
    a = run_of(tmp_path / "a", [0.5] * 4)
    cold = run_of(tmp_path / "b", [0.5] * 4, BANK, model={"sampling": {"temperature": 0.6}})
    with pytest.raises(InputError, match=r"plan\.model"):
        arms_of_runs([a, cold])
    other = run_of(tmp_path / "c", [0.5] * 4, model={"checkpoint_id": "another"})
    assert len(arms_of_runs([a, other], across="model")) == 2


def test_other_jobs_and_missing_episodes_abort(tmp_path: Path) -> None:
    a = run_of(tmp_path / "a", [0.5] * 4)
    fewer = run_of(tmp_path / "b", [0.5] * 3, task_split={"task_count": 4})
    with pytest.raises(InputError, match="different jobs"):
        arms_of_runs([a, fewer])
    plan = plan_of(TASKS)
    cut = write_run(tmp_path / "c", plan, [trace_of(plan, 1, 0.5)])
    with pytest.raises(InputError, match="3 of 4 episodes"):
        arms_of_runs([a, cut])


def test_plays_of_one_task_are_averaged_before_pairing(tmp_path: Path) -> None:
    def row(task: int, a: float, b: float) -> Json:
        return {
            "task_id": task,
            "a": {"reward": a, "success": int(a == 1)},
            "b": {"reward": b, "success": int(b == 1)},
        }

    write_json(tmp_path / "o.json", [row(1, 0.0, 1.0), row(1, 1.0, 1.0), row(2, 0.0, 0.0)])
    a, b = arms_of_file(tmp_path / "o.json", ["a", "b"])
    assert a.values["reward"].tolist() == [0.5, 0.0]
    assert compare(a, b)["pairs"] == 2


def test_an_unknown_arm_names_the_known_ones(tmp_path: Path) -> None:
    write_json(tmp_path / "o.json", [{"task_id": 1, "a": {"reward": 1.0, "success": 1}}])
    with pytest.raises(InputError, match="known: a"):
        arms_of_file(tmp_path / "o.json", ["z"])


def outcome(task: int, sample: int, **arms: Json) -> Json:
    return {"task_id": task, "split": "test", "sample_id": sample, **arms}


def test_a_play_that_stands_in_the_file_twice_is_refused(tmp_path: Path) -> None:
    arm: Json = {"reward": 1.0, "success": 1}
    rows = [outcome(task, 0, a=arm) for task in (1, 2, 2)]
    write_json(tmp_path / "o.json", rows)
    with pytest.raises(InputError, match=r"\[2\]\.task_id: sample 0 of this task .* twice"):
        arms_of_file(tmp_path / "o.json", ["a"])
    rows[2]["sample_id"] = 1
    write_json(tmp_path / "o.json", rows)
    assert arms_of_file(tmp_path / "o.json", ["a"])[0].task_ids == (1, 2)


def test_a_task_that_lacks_an_arm_is_named_wherever_it_stands(tmp_path: Path) -> None:
    arm: Json = {"reward": 1.0, "success": 1}
    rows = [outcome(1, 0, a=arm), outcome(2, 0, a=arm, b=arm)]
    for order in (rows, rows[::-1]):
        write_json(tmp_path / "o.json", order)
        place = rf"\[{order.index(rows[0])}\]\.b: is missing"
        with pytest.raises(InputError, match=place):
            arms_of_file(tmp_path / "o.json", ["a", "b"])


def test_different_tasks_are_refused() -> None:
    a = Arm("a", (1, 2), {"reward": np.zeros(2), "r_success": np.zeros(2)})
    b = Arm("b", (1, 3), {"reward": np.zeros(2), "r_success": np.zeros(2)})
    with pytest.raises(InputError, match="different tasks"):
        compare(a, b)


@pytest.mark.parametrize("outcomes", [True, False])
def test_nothing_is_compared_with_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], outcomes: bool
) -> None:
    write_json(tmp_path / "o.json", [outcome(1, 0, a={"reward": 1.0, "success": 1})])
    (tmp_path / "run").mkdir()
    (tmp_path / "same").symlink_to(tmp_path / "run")
    arms = ["--outcomes", str(tmp_path / "o.json"), "--a", "a", "--b", "a"]
    runs = [str(tmp_path / "run"), str(tmp_path / "same")]
    assert main(["compare", *(arms if outcomes else runs)]) == 2
    message = capsys.readouterr().err
    assert "cannot be compared with itself" in message
    assert ("--a and --b" in message) == outcomes


def test_a_metric_that_was_typed_is_named_by_its_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arm: Json = {"reward": 1.0, "success": 1}
    write_json(tmp_path / "o.json", [outcome(task, 0, a=arm, b=arm) for task in (1, 2)])
    arms = ["--outcomes", str(tmp_path / "o.json"), "--a", "a", "--b", "b"]
    assert main(["compare", *arms, "--primary", "tokens"]) == 2
    assert "--primary (primary): both arms need this metric" in capsys.readouterr().err
