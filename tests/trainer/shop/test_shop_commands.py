"""``python -m trainer shop``: generate, clean, audit."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from trainer.cli.main import main


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = main(["shop", *words])
    output = capsys.readouterr().out
    return code, json.loads(output) if output else {}


def test_a_raw_catalogue_becomes_an_audited_split(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw, out = str(tmp_path / "raw.json.gz"), tmp_path / "clean"
    code, made = run(capsys, "generate", raw, "--products", "200", "--noise", "0.05")
    assert code == 0
    code, manifest = run(
        capsys,
        *("clean", raw, str(out), "--validation-size", "10", "--test-size", "10"),
        *("--sha256", made["data_sha256"]),
    )
    assert code == 0
    assert manifest["splits"]["test"] == 10
    code, found = run(
        capsys,
        *("audit", "--catalogue", str(out / "catalogue.cleaned.json.gz")),
        *("--splits", str(out / "splits.json"), "--split", "train", "--json"),
    )
    assert code == 0
    assert found["tasks"] == manifest["splits"]["train"]
    assert 0 < found["winnable"] < found["tasks"]
    assert len(found["unwinnable"]) == found["tasks"] - found["winnable"]
    assert found["environment"]["catalogue_sha256"] == manifest["data_sha256"]


def test_the_bundled_tasks_without_two_price_axes_are_winnable(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, found = run(capsys, "audit", "--split", "test")
    assert code == 0
    assert found["winnable"] == found["tasks"] == 10


def test_useless_records_are_reported_once_for_each_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = tmp_path / "raw.json"
    run(capsys, "generate", str(raw), "--products", "100", "--noise", "0.2")
    assert main(["shop", "audit", "--catalogue", str(raw)]) == 0
    output = capsys.readouterr()
    lines = output.err.splitlines()
    assert [line.split(": ")[1] for line in lines] == [
        "axis_without_values",
        "task_without_attributes",
    ]
    assert all(line.startswith(str(raw)) for line in lines)
    assert set(json.loads(output.out)["notices"]) == {
        "axis_without_values",
        "task_without_attributes",
    }


def test_another_catalogue_than_expected_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = tmp_path / "raw.json"
    run(capsys, "generate", str(raw), "--products", "5")
    command = ["shop", "audit", "--catalogue", str(raw)]
    assert main([*command, "--catalogue-sha256", "published-cleaned"]) == 2
    assert "00d5285b6aca5ade" in capsys.readouterr().err


def test_bad_input_is_one_line_and_exit_code_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["shop", "audit", "--catalogue", str(tmp_path / "none.json")]) == 2
    error = capsys.readouterr().err
    assert "no such file" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["generate", "{folder}"],
        ["generate", "{pipe}"],
        ["clean", "{file}", "{file}"],
        ["annotate", "{file}", "{folder}", "--base-url", "http://h/v1", "--model", "m"],
        ["annotate", "{file}", "{new}", "--base-url", "h", "--model", "m"],
        ["annotate", "{file}", "{new}", "--base-url", "http://h", "--model", "m", "--workers=0"],
    ],
)
def test_an_output_or_option_that_cannot_work_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.json").write_text("[]")
    os.mkfifo(tmp_path / "pipe")
    names = {
        "folder": tmp_path / "folder",
        "file": tmp_path / "file.json",
        "pipe": tmp_path / "pipe",
        "new": tmp_path / "new.json",
    }
    assert main(["shop", *(one.format(**names) for one in arguments)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file.json", "folder", "pipe"]
