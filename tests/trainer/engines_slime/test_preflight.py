"""The preflight accepts a whole round and refuses each broken input by name."""

from __future__ import annotations

import json

import pytest

from tests.trainer.engines_slime.launch_files import TASKS, make_launch, task_row, write_hooks
from trainer.engines.slime.preflight import check_slime
from trainer.engines.slime.versions import router_check
from trainer.files import read_json, write_json
from trainer.rollout.prompts import SYSTEM_PROMPT


@pytest.fixture
def launch(tmp_path):
    return make_launch(tmp_path)


def failed(path):
    document = check_slime(path, {})
    return {item["name"] for item in document["checks"] if item["state"] == "failed"}


def test_good_inputs_are_accepted_and_described(launch):
    document = check_slime(launch, {})
    offline = [item for item in document["checks"] if not item["name"].startswith("programs.")]
    assert [item for item in offline if item["state"] == "failed"] == []
    assert document["scope"] == "offline_inputs_only"
    assert document["round_id"] == "round-000"
    assert document["active_chunks"] == 2
    assert document["training_tasks"] == len(TASKS)
    assert document["skill_free_probability"] == 0.2
    assert document["episode_concurrency"] == 32
    assert len(document["curriculum_state_id"]) == 64
    assert len(document["skillbank_sha256"]) == 64


def change_json(path, **values):
    document = read_json(path)
    document.update(values)
    write_json(path, document)


def test_a_changed_bank_is_refused(launch, tmp_path):
    change_json(tmp_path / "bank.json", bank_version="other")
    assert "inputs.same_bank" in failed(launch)


def test_a_changed_chunk_is_refused_even_when_the_hash_was_repaired(launch, tmp_path):
    bank = read_json(tmp_path / "bank.json")
    bank["skills"][0]["content"] = "something else"
    write_json(tmp_path / "bank.json", bank)
    assert failed(launch) >= {"inputs.same_bank", "inputs.same_chunks"}


def test_a_changed_curriculum_is_refused(launch, tmp_path):
    change_json(tmp_path / "curriculum.json", skill_free_probability=0.5)
    assert "inputs.curriculum" in failed(launch)


def test_missing_files_are_refused_without_a_traceback(launch, tmp_path):
    (tmp_path / "curriculum.json").unlink()
    (tmp_path / "bank.json").unlink()
    assert failed(launch) >= {"inputs.curriculum", "inputs.skillbank"}


@pytest.mark.parametrize(
    ("rows", "name", "detail"),
    [
        ([3, 5, 9], "inputs.task_ids", "1 frozen tasks missing, 1 unknown, e.g. 8"),
        ([3, 5], "inputs.task_ids", "1 frozen tasks missing, 0 unknown, e.g. 8"),
        ([3, 5, 8, 8], "inputs.tasks", "a task appears twice"),
    ],
)
def test_task_ids_must_be_exactly_the_frozen_ones(launch, tmp_path, rows, name, detail):
    text = "".join(json.dumps(task_row(task)) + "\n" for task in rows)
    (tmp_path / "tasks.jsonl").write_text(text)
    items = {item["name"]: item for item in check_slime(launch, {})["checks"]}
    assert items[name]["state"] == "failed"
    assert detail in items[name]["detail"]


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"prompt": "4"}, "prompt and task_id disagree (found '4')"),
        (
            {"metadata": {**task_row(3)["metadata"], "schema_version": "other"}},
            "another schema (found 'other')",
        ),
        (
            {"metadata": {**task_row(3)["metadata"], "split": "val"}},
            "only train tasks may be trained on (found 'val')",
        ),
        (
            {"metadata": {**task_row(3)["metadata"], "task_id": True}},
            "prompt and task_id disagree",
        ),
        ({"metadata": None}, "not a task record"),
    ],
)
def test_a_bad_task_line_is_named_by_its_number(launch, tmp_path, change, detail):
    lines = [task_row(5), {**task_row(3), **change}]
    (tmp_path / "tasks.jsonl").write_text("\n" + "".join(json.dumps(row) + "\n" for row in lines))
    items = {item["name"]: item for item in check_slime(launch, {})["checks"]}
    assert items["inputs.tasks"]["state"] == "failed"
    assert "line 3: " in items["inputs.tasks"]["detail"]
    assert detail in items["inputs.tasks"]["detail"]


def test_the_persona_must_be_on_in_split_and_hooks(launch, tmp_path):
    write_hooks(tmp_path, shopsim_environment_persona=False)
    assert "inputs.persona" in failed(launch)
    write_hooks(tmp_path)
    write_json(
        tmp_path / "splits.json", {"splits": {"train": {"task_ids": list(TASKS), "persona": None}}}
    )
    assert "inputs.persona" in failed(launch)


@pytest.mark.parametrize(
    "change",
    [
        {"shopsim_max_steps": 0},
        {"shopsim_max_steps": True},
        {"shopsim_max_consecutive_failed_groups": 0},
        {"shopsim_episode_concurrency": 1.5},
        {"shopsim_unknown_key": 1},
    ],
)
def test_counts_must_be_positive_integers_and_keys_known(launch, tmp_path, change):
    write_hooks(tmp_path, **change)
    assert "hooks.settings" in failed(launch)


def test_an_unreadable_prompt_is_refused(launch, tmp_path):
    write_hooks(tmp_path, shopsim_system_prompt_file="no-such-prompt.txt")
    assert "inputs.system_prompt" in failed(launch)


def test_another_prompt_than_the_evaluations_is_pointed_out(launch, tmp_path):
    (tmp_path / "prompt.txt").write_text("Buy.")
    write_hooks(tmp_path, shopsim_system_prompt_file="prompt.txt")
    items = {item["name"]: item for item in check_slime(launch, {})["checks"]}
    assert items["inputs.system_prompt"]["state"] == "warning"
    (tmp_path / "prompt.txt").write_text(SYSTEM_PROMPT + "\n")
    items = {item["name"]: item for item in check_slime(launch, {})["checks"]}
    assert items["inputs.system_prompt"]["state"] == "passed"


def test_a_flag_that_slime_does_not_know_is_refused(launch, tmp_path):
    arguments = tmp_path / "slime" / "slime" / "utils" / "arguments.py"
    arguments.write_text(arguments.read_text().replace("--eps-clip-high", "--eps-clip-upper"))
    items = {item["name"]: item for item in check_slime(launch, {})["checks"]}
    assert items["slime.flags"]["state"] == "failed"
    assert "--eps-clip-high" in items["slime.flags"]["detail"]


def test_a_slime_that_counts_samples_needs_one_sample_per_episode(launch, tmp_path):
    (tmp_path / "slime" / "slime" / "utils" / "types.py").write_text("")
    assert "slime.rollout_id" in failed(launch)
    write_hooks(tmp_path, shopsim_sample_layout="episode")
    assert "slime.rollout_id" not in failed(launch)


def test_slimes_own_recorder_needs_a_slime_that_has_it(launch, tmp_path):
    write_hooks(tmp_path, shopsim_recorder="slime")
    assert "slime.trajectory_manager" in failed(launch)


def test_what_this_machine_cannot_check_is_skipped_and_not_called_good(launch):
    items = {item["name"]: item for item in check_slime(launch, {})["checks"]}
    assert items["host.disk"]["state"] == "skipped"
    assert items["host.disk"]["ok"] is False
    assert items["host.disk"]["remedy"]


@pytest.mark.parametrize(
    ("policies", "state"),
    [
        ('choices=["random", "manual"]', "failed"),  # the package on PyPI
        ('choices=["random", "manual", "consistent_hashing"]', "passed"),  # slime's build
        (None, "skipped"),
    ],
)
def test_a_policy_that_the_installed_router_does_not_know_is_refused(
    tmp_path, monkeypatch, policies, state
):
    """slime itself would end at its arguments, minutes later."""
    if policies is not None:
        package = tmp_path / "site" / "sglang_router"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("raise AssertionError('imported')")
        (package / "router_args.py").write_text(policies)
        monkeypatch.syspath_prepend(str(package.parent))
    else:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    found = router_check("consistent_hashing")
    assert found.to_json()["state"] == state
    assert state != "failed" or "manual" in found.remedy
