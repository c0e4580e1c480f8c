from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.skills.test_bank import GOLDEN
from trainer.cli import curriculum as command
from trainer.errors import InputError
from trainer.files import read_json, write_json

BUILD = ["--round-id", "round-000", "--q", "0.2", "--rho-min", "0.2", "--rho-max", "0.8"]


def run(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    command.register(parser.add_subparsers())
    args = parser.parse_args(["curriculum", *map(str, arguments)])
    return int(args.func(args))


def said(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    return dict(json.loads(capsys.readouterr().out))


def test_build_check_and_treatment_agree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bank, out = tmp_path / "bank.json", tmp_path / "curriculum.json"
    write_json(bank, GOLDEN)
    path = ["--schema", "v1", "--source-path", "/golden/bank.json", "--seed", 7]
    assert run("build", bank, out, *BUILD, *path) == 0
    built = said(capsys)
    state = "d353963573ce3972858687d2b724f24656452a10af12ca76ad14ea12b82779a1"
    assert built["state_id"] == state
    assert built["chunks"] == [{"skill_id": "a", "rho": 0.8}, {"skill_id": "b", "rho": 0.5}]
    assert run("check", out) == 0
    assert said(capsys)["state_id"] == state
    assert run("treatment", out, "--group", 1) == 0
    answer = said(capsys)
    assert (answer["mode"], answer["skill_ids"]) == ("assisted", ["a"])


def test_check_says_that_a_curriculum_was_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bank, out = tmp_path / "bank.json", tmp_path / "curriculum.json"
    write_json(bank, GOLDEN)
    run("build", bank, out, *BUILD)
    capsys.readouterr()
    document = read_json(out)
    document["skill_free_probability"] = 0.5
    write_json(out, document)
    assert run("check", out) == 1
    assert said(capsys)["ok"] is False


def test_a_missing_file_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        run("check", tmp_path / "none.json")


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (["--q", "1.5"], "--q (skill_free_probability)"),
        (["--rho-min", "0.9"], "--rho-min (rho_min)"),
        (["--scale", "0"], "--scale (contribution_scale)"),
        (["--expected-chunks", "0"], "--expected-chunks (expected_chunks)"),
        (["--q-max", "0.1"], "--q-max (q_max)"),
        (["--schema", "v1", "--expected-chunks", "1"], "--schema (schema)"),
    ],
)
def test_a_value_that_was_typed_is_named_by_its_flag_and_its_field(
    tmp_path: Path, more: list[str], named: str
) -> None:
    write_json(tmp_path / "bank.json", GOLDEN)
    with pytest.raises(InputError) as caught:
        run("build", tmp_path / "bank.json", tmp_path / "out.json", *BUILD, *more)
    assert caught.value.field == named
    assert not (tmp_path / "out.json").exists()


def test_a_mistake_in_a_file_is_named_as_it_stands_there(tmp_path: Path) -> None:
    write_json(tmp_path / "bank.json", {**GOLDEN, "schema_version": "other"})
    with pytest.raises(InputError) as caught:
        run("build", tmp_path / "bank.json", tmp_path / "out.json", *BUILD)
    assert caught.value.field == "schema_version"
