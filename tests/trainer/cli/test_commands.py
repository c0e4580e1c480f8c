"""The commands: exit codes, keys, and what lies on disk afterwards."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.trainer.cli.conftest import CHUNKS, Command, RoundInputs
from trainer.files import read_json, write_json
from trainer.rollout.traces import without_times
from trainer.skills.bank import write_bank

ROOT = Path(__file__).parents[3]
LONGEST_S = 300.0  # for a step, where others use the machine too


def test_a_round_is_checked_trained_and_analysed(inputs: RoundInputs, command: Command) -> None:
    train = inputs.config("train")
    code, found, _ = command("check", train, "--json")
    assert (code, found["ready"], found["scope"]) == (0, True, "offline_inputs_only")
    assert found["active_chunks"] == 2 and found["training_tasks"] == 3726
    code, found, _ = command("train", train, "--json")
    assert code == 0
    assert (found["status"], found["last_step"], found["groups"]) == ("complete", 2, 6)
    folder = inputs.folder / "train"
    assert read_json(folder / "summary.json") == found
    assert read_json(folder / "manifest.json")["execution"] == {"threads": 1}
    checkpoint = read_json(folder / "checkpoint" / "checkpoint.json")
    assert (checkpoint["step"], checkpoint["next_group"], checkpoint["updates"]) == (2, 6, 4)
    code, found, _ = command("analyst", "run", inputs.config("analyse"))
    assert (code, found["candidates"], found["analyzed_cards"]) == (0, 0, 0)


def test_the_next_round_counts_on(inputs: RoundInputs, command: Command) -> None:
    command("train", inputs.config("train"))
    first = inputs.folder / "train" / "checkpoint"
    policy = {"checkpoint": str(first), "threads": 1}
    command("train", inputs.config("train", output_dir="second", policy=policy, steps=1))
    line = json.loads((inputs.folder / "second" / "metrics.jsonl").read_text())
    assert line["step"] == 3
    group = json.loads((inputs.folder / "second" / "groups.jsonl").open().readline())
    assert group["group_index"] == 6


def test_training_twice_gives_the_same_documents(inputs: RoundInputs, command: Command) -> None:
    for name in ("one", "two"):
        command("train", inputs.config("train", output_dir=name))
    for name in ("groups.jsonl", "updates.jsonl", "metrics.jsonl", "manifest.json", "summary.json"):
        one, two = (
            [without_times(json.loads(line)) for line in _lines(inputs.folder / folder / name)]
            for folder in ("one", "two")
        )
        assert one == two, name


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]


def test_an_evaluation_is_planned_run_and_summarised(inputs: RoundInputs, command: Command) -> None:
    config = inputs.config("evaluate")
    code, plan, _ = command("evaluate", "plan", config)
    assert (code, plan["episodes"], len(plan["first_jobs"])) == (0, 6, 5)
    assert plan["resume"] is False and plan["skills"] == {"provider": "none"}
    assert not (inputs.folder / "bare" / "manifest.json").exists()
    code, found, _ = command("evaluate", "run", config)
    assert (code, found["status"], found["counts"]["completed"]) == (0, "complete", 6)
    manifest = read_json(inputs.folder / "bare" / "manifest.json")
    assert manifest["plan_fingerprint"] == plan["plan_fingerprint"]
    assert manifest["execution"]["threads"] == 1
    code, again, _ = command("evaluate", "summarize", config)
    assert code == 0
    assert without_times(again) == without_times(found)


def test_an_arm_with_a_bank_shows_it(inputs: RoundInputs, command: Command) -> None:
    skills = {"provider": "bank", "bank": "bank.json"}
    code, _, _ = command("evaluate", "run", inputs.config("evaluate", skills=skills))
    assert code == 0
    trace = json.loads((inputs.folder / "bare" / "traces.jsonl").open().readline())
    assert [chunk["skill_id"] for chunk in trace["selected_skills"]] == ["brand", "calm"]
    assert trace["provenance"]["skills"]["provider"] == "json_skillbank"


def test_missing_episodes_are_exit_code_one(inputs: RoundInputs, command: Command) -> None:
    config = inputs.config("evaluate")
    command("evaluate", "run", config)
    traces = inputs.folder / "bare" / "traces.jsonl"
    traces.write_text("".join(traces.read_text().splitlines(keepends=True)[:4]))
    code, found, _ = command("evaluate", "summarize", config)
    assert (code, found["status"], found["counts"]["coverage"]) == (1, "incomplete", 4 / 6)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ("bank", "curriculum_of_bank"),
        ("curriculum", "curriculum"),
        ("checkpoint", "checkpoint"),
        ("tasks", "tasks"),
    ],
)
def test_check_finds_what_was_changed(
    inputs: RoundInputs, command: Command, change: str, name: str
) -> None:
    config = inputs.config("train")
    if change == "bank":
        write_bank(inputs.folder / "bank.json", CHUNKS[:1], bank_version="other", metadata={})
    elif change == "curriculum":
        document = read_json(inputs.folder / "curriculum.json")
        write_json(inputs.folder / "curriculum.json", {**document, "skill_free_probability": 0.3})
    elif change == "checkpoint":
        config = inputs.config("train", policy={"checkpoint": "nowhere", "threads": 1})
    else:
        (inputs.folder / "tasks.jsonl").write_text("")
        config = inputs.config("train", task_data="tasks.jsonl")
    code, found, _ = command("check", config)
    assert (code, found["ready"]) == (1, False)
    failed = {check["name"]: check for check in found["checks"] if not check["ok"]}
    assert name in failed and failed[name]["detail"]
    code, _, message = command("train", config)
    assert code == 2 and message.startswith("error: ")
    assert not (inputs.folder / "train" / "metrics.jsonl").exists()


def test_a_whole_experiment_can_be_checked(inputs: RoundInputs, command: Command) -> None:
    path = inputs.folder / "experiment.yaml"
    path.write_text(
        f"name: x\nstart: {{skillbank: bank.json, checkpoint: {inputs.checkpoint}}}\n"
        "evaluation: {bare_tasks: 1600}\n"
    )
    code, found, _ = command("check", path)
    assert (code, found["ready"]) == (0, True), found
    path.write_text(path.read_text().replace("1600", "9999"))
    code, found, _ = command("check", path)
    assert code == 1
    assert "has only" in next(c["detail"] for c in found["checks"] if c["name"] == "splits")


def test_later_stages_are_checked_for_what_earlier_ones_write(
    inputs: RoundInputs, command: Command
) -> None:
    config = inputs.config("analyse")
    code, found, _ = command("check", config)
    failed = [check["name"] for check in found["checks"] if not check["ok"]]
    assert (code, failed) == (1, ["training_round"])
    command("train", inputs.config("train"))
    assert command("check", config)[0] == 0
    gate = inputs.folder / "gate.yaml"
    gate.write_text(
        "stage: gate\nname: g\noutput_dir: gate\ncandidate_pool: analysis/candidate_pool.json\n"
        f"bare_run: bare\npolicy: {{checkpoint: {inputs.checkpoint}}}\n"
    )
    code, found, _ = command("check", gate)
    failed = [check["name"] for check in found["checks"] if not check["ok"]]
    assert (code, failed) == (1, ["candidate_pool", "bare_run"])
    command("analyst", "run", config)
    command("evaluate", "run", inputs.config("evaluate"))
    assert command("check", gate)[0] == 0


def test_a_slime_launch_is_checked_by_its_engine(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "slime.yaml"
    path.write_text("engine: slime\ncheckpoints: {hf_checkpoint: a, load: b, save: c}\n")
    code, found, _ = command("check", path)
    assert (code, found["ready"], found["scope"]) == (1, False, "offline_inputs_only")


def test_a_wrong_file_is_exit_code_two_and_one_line(command: Command, tmp_path: Path) -> None:
    code, out, message = command("train", tmp_path / "missing.yaml")
    assert (code, out) == (2, None)
    assert message.count("\n") == 1 and "missing.yaml: no such configuration file" in message


def test_prepare_data_writes_the_task_file(command: Command, tmp_path: Path) -> None:
    write_json(tmp_path / "splits.json", {"splits": {"train": {"task_ids": [3, 1]}}})
    code, found, _ = command(
        "prepare-data", tmp_path / "splits.json", "train", tmp_path / "out.jsonl", "--json"
    )
    assert (code, found["records"]) == (0, 2)
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 2


def test_two_processes_never_work_in_one_folder(inputs: RoundInputs, command: Command) -> None:
    from trainer.lock import exclusive

    config = inputs.config("evaluate")
    with exclusive(inputs.folder / "bare"):
        code, _, message = command("evaluate", "run", config)
    assert code == 2 and "another process is working" in message
    assert command("evaluate", "run", config)[0] == 0


@pytest.mark.slow
@pytest.mark.chaos
def test_sigterm_and_sigkill_leave_a_round_that_resumes_to_the_same_documents(
    inputs: RoundInputs, command: Command
) -> None:
    whole = inputs.config("train", output_dir="whole", steps=4)
    assert command("train", whole)[0] == 0
    config = inputs.config("train", output_dir="cut", steps=4)
    folder = inputs.folder / "cut"
    seen = 0
    for sign, expected in ((signal.SIGTERM, 143), (signal.SIGKILL, -9)):
        process = subprocess.Popen(
            [sys.executable, "-m", "trainer", "train", str(config)],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        seen = _wait_for_a_step(folder / "metrics.jsonl", seen, process)
        process.send_signal(sign)
        assert process.wait(60) in (expected, 0)
    code, found, _ = command("train", config)
    assert (code, found["last_step"]) == (0, 4)
    for name in ("groups.jsonl", "updates.jsonl", "metrics.jsonl", "manifest.json", "summary.json"):
        cut, straight = (
            [without_times(json.loads(line)) for line in _lines(inputs.folder / place / name)]
            for place in ("cut", "whole")
        )
        assert cut == straight, name


def _wait_for_a_step(path: Path, seen: int, process: subprocess.Popen[bytes]) -> int:
    """Until the file has more lines than were seen; how many it then has."""
    deadline = time.monotonic() + LONGEST_S
    while time.monotonic() < deadline:
        lines = len(path.read_text().splitlines()) if path.exists() else 0
        if lines > seen or process.poll() is not None:
            return lines
        time.sleep(0.05)
    raise AssertionError("no step was finished")


def test_a_reader_that_has_seen_enough_is_no_fault() -> None:
    line = f"{sys.executable} -m trainer shop audit --json | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert "Traceback" not in done.stderr
    assert done.stdout.strip() == "141"


def test_no_group_has_a_negative_number(tmp_path: Path, command: Command) -> None:
    code, _, message = command("curriculum", "treatment", tmp_path / "c.json", "--group", "-5")
    assert code == 2
    assert "--group" in message and "-5" in message and "from 0" in message
