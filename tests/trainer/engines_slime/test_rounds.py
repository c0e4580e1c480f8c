"""The configurations of a round: what they say, and that a whole host's worth of them is ready."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.trainer.engines_slime.launch_files import write_bank
from trainer.cli.check import check_config
from trainer.engines.slime.rounds import RoundInputs, write_round
from trainer.files import write_json, write_jsonl
from trainer.rollout.prompts import SYSTEM_PROMPT

REPOSITORY = Path(__file__).resolve().parents[3]
SHIPPED = REPOSITORY / "configs" / "slime"
STAGES = sorted(path.name for path in SHIPPED.glob("*.yaml") if path.name != "hooks.yaml")


@pytest.fixture
def inputs(tmp_path):
    return RoundInputs(
        root=tmp_path,
        round_id="round-001",
        skillbank=tmp_path / "bank.json",
        curriculum=tmp_path / "curriculum.json",
        export=tmp_path / "hf" / "step-40",
        history_ledger=tmp_path / "ledger.jsonl",
    )


def test_a_round_gets_its_four_files_with_the_published_values(inputs, tmp_path):
    files = write_round(inputs)
    assert {name: path.name for name, path in files.items()} == {
        "slime": "slime.yaml",
        "analysis": "analysis.yaml",
        "val": "val.yaml",
        "gate": "gate.yaml",
    }
    read = {name: yaml.safe_load(path.read_text()) for name, path in files.items()}
    assert files["slime"].parent == tmp_path / "runs" / "loop" / "round-001"
    assert read["slime"]["shopsim_episode_concurrency"] == 32
    assert read["slime"]["shopsim_max_steps"] == 30
    assert read["slime"]["shopsim_max_consecutive_failed_groups"] == 8
    assert read["slime"]["shopsim_tool_parser"] == "qwen3_coder"
    assert read["analysis"]["proposal_checkpoint"] == "qwen35-4b-round-001"
    assert read["analysis"]["analyst"]["max_candidates"] == 6
    assert read["analysis"]["ledger_history"] == str(tmp_path / "ledger.jsonl")
    assert read["val"]["name"] == "round-001-bare-val"
    assert read["val"]["seed"] == 20260830
    assert read["val"]["max_turns"] == 30
    endpoint = read["val"]["policy"]["endpoint"]
    assert endpoint["base_url"] == "http://127.0.0.1:30000/v1"
    assert endpoint["checkpoint_id"] == "round-001-checkpoint"
    assert (endpoint["attempts"], endpoint["timeout_seconds"]) == (3, 180)
    assert endpoint["extra_body"] == {"enable_thinking": True}
    assert read["gate"]["mask_seed"] == 20260901
    assert read["gate"]["active_skill_budget"] == 10
    assert read["gate"]["policy"] == read["val"]["policy"]
    assert read["gate"]["bare_run"] == read["val"]["output_dir"]


def test_every_path_of_a_round_is_absolute(inputs):
    for path in write_round(inputs).values():
        for value in strings(yaml.safe_load(path.read_text())):
            if "/" in value and not value.startswith("http") and value != "Qwen/Qwen3.5-4B":
                assert Path(value).is_absolute(), value


def strings(value):
    if isinstance(value, dict):
        return [text for item in value.values() for text in strings(item)]
    if isinstance(value, list):
        return [text for item in value for text in strings(item)]
    return [value] if isinstance(value, str) else []


def test_the_command_writes_a_round(tmp_path):
    done = subprocess.run(
        [
            *(sys.executable, "-m", "trainer.engines.slime.rounds"),
            *("--project-root", str(tmp_path), "--round-id", "round-000"),
            *("--skillbank", "bank.json", "--curriculum", "c.json", "--export", "hf"),
        ],
        cwd=REPOSITORY,
        env={"SGLANG_PORT": "31000", "ROLLOUT_MAX_RESPONSE_LEN": "2048", "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    gate = yaml.safe_load(Path(json.loads(done.stdout)["gate"]).read_text())
    assert gate["policy"]["endpoint"]["base_url"] == "http://127.0.0.1:31000/v1"
    assert gate["policy"]["max_new_tokens"] == 2048


def test_the_shipped_prompt_is_the_built_in_one():
    text = (SHIPPED / "prompts" / "persona_single_turn.txt").read_text(encoding="utf-8")
    assert text.rstrip("\n") == SYSTEM_PROMPT.rstrip("\n")


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """A host on which everything that the shipped files name is there, small and synthetic."""
    root = tmp_path_factory.mktemp("host")
    shutil.copytree(SHIPPED, root / "configs" / "slime")
    make_catalogue(root)
    bank = root / "runs" / "qwen3.5-4b" / "round-000"
    bank.mkdir(parents=True)
    write_bank(bank)
    (bank / "bank.json").rename(bank / "skillbank.json")
    training = root / "runs" / "qwen3.5-4b" / "training" / "round-000"
    write_jsonl(training / "groups.jsonl", [])
    write_json(root / "runs" / "round-000-bare-val" / "manifest.json", {})
    last = root / "runs" / "round-003-online-gate"
    last.mkdir()
    shutil.copy(bank / "skillbank.json", last / "selected_skillbank.json")
    return root


def make_catalogue(root):
    """A cleaned catalogue and its splits, made by the product's own commands."""

    def trainer(*argv):
        subprocess.run(
            [sys.executable, "-m", "trainer", "shop", *argv],
            cwd=REPOSITORY,
            check=True,
            capture_output=True,
        )

    trainer("generate", str(root / "raw.json.gz"), "--products", "300")
    sizes = ("--validation-size", "40", "--test-size", "40")
    trainer("clean", str(root / "raw.json.gz"), str(root / "clean"), *sizes)
    data = root / "data"
    data.mkdir()
    [archive] = (root / "clean").glob("*.json.gz")
    shutil.copy(archive, data / "catalogue.json.gz")
    [splits] = (root / "clean").glob("*splits*.json")
    shutil.copy(splits, data / "persona_splits.v1.json")


# these want a slime tree or a pool besides
@pytest.mark.parametrize(
    "name", sorted(set(STAGES) - {"train.yaml", "experiment.yaml", "gate.yaml"})
)
def test_a_shipped_configuration_is_ready_where_its_files_are(host, name, monkeypatch):
    monkeypatch.setenv("DASHSCOPE_API_KEY", "of the test")
    document = check_config(host / "configs" / "slime" / name)
    assert [item for item in document["checks"] if not item["ok"]] == []
    assert document["ready"] is True


def test_the_shipped_gate_is_ready_with_a_pool(host, published):
    pool = published / "artifacts" / "round-000" / "analysis" / "candidate_pool.json"
    there = host / "runs" / "round-000-online-analysis"
    there.mkdir(exist_ok=True)
    shutil.copy(pool, there / "candidate_pool.json")
    document = check_config(host / "configs" / "slime" / "gate.yaml")
    assert [item for item in document["checks"] if not item["ok"]] == []


@pytest.mark.parametrize("name", STAGES)
def test_on_any_machine_a_shipped_configuration_misses_only_what_is_not_shipped(name):
    """Files and keys of the host, and what needs them; never a setting."""
    document = check_config(SHIPPED / name)
    absent = ("no such", "not checked", "unknown", "no slime", "no split file", "holds no key")
    for item in document["checks"]:
        host_only = item["name"].startswith(("versions.", "programs.", "files."))
        if not item["ok"] and not host_only:
            assert any(words in item["detail"] for words in absent), item
