"""Bad input is one line that says where, what and what to do; and nothing is left behind."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainer.cli.main import main
from trainer.errors import InputError
from trainer.shop.synthetic import SyntheticSettings, generate_records
from trainer.shop.world import load_world

Change = Callable[[list[dict[str, Any]]], None]


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    return list(generate_records(SyntheticSettings(products=60)))


def write(path: Path, records: Any) -> Path:
    path.write_text(json.dumps(records, ensure_ascii=False))
    return path


def complaint(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line of a refused command."""
    capsys.readouterr()
    assert main(["shop", *words]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert output.err.startswith("error: ")
    return output.err


SMALL = ("--validation-size", "5", "--test-size", "5")


def set_task(name: str, value: Any) -> Change:
    return lambda records: records[7]["instructions"][0].update({name: value})


def set_product(name: str, value: Any) -> Change:
    return lambda records: records[7].update({name: value})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_task("instruction", 5), "[7].instructions[0].instruction: a text is needed (found 5)"),
        (set_task("attributes", "x"), "[7].instructions[0].attributes: must be a list"),
        (set_task("instruction_simple", 3), "[7].instructions[0].instruction_simple"),
        (set_product("user_persona", "x"), "[7].user_persona: must be an object (found 'x')"),
        (set_product("customization_options", {"颜色": 3}), "[7].customization_options.颜色"),
        (set_product("customization_options", {"颜色": [{}]}), "an option needs a value"),
        (set_product("pricing", "x" * 500), "[7].pricing"),
        (set_product("title", None), "[7].title: a text is needed"),
        (set_product("instructions", {"a": 1}), "[7].instructions: must be a list"),
    ],
)
def test_a_broken_record_is_not_cleaned_in_part(
    records: list[dict[str, Any]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Change,
    message: str,
) -> None:
    broken = json.loads(json.dumps(records))
    broken[7].setdefault("user_persona", {"用户ID": "u"})
    broken[7]["instructions"][0].setdefault("instruction_simple", "想买一个")
    change(broken)
    source = write(tmp_path / "raw.json", broken)
    found = complaint(capsys, "clean", str(source), str(tmp_path / "out"), *SMALL)
    assert f"{source}: [7]" in found
    assert message in found
    assert "Correct or remove the record" in found
    assert len(found) < 400
    assert not (tmp_path / "out").exists()


def test_impossible_splits_leave_nothing_behind(
    records: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path / "raw.json", records)
    found = complaint(capsys, "clean", str(source), str(tmp_path / "out"))
    assert "test size: no whole groups add up to 400 tasks" in found
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"a": 1}, "annotations: is missing"),
        ({"annotations": [3], "annotator": {}}, "annotations[0]: must be an object"),
        ({"annotations": [{"task_id": "x"}], "annotator": {}}, "annotations[0].task_id"),
        (
            {
                "annotations": [
                    {"task_id": 1, "kind": "hard_upper", "amount": None, "evidence": "5元"}
                ],
                "annotator": {},
            },
            "annotations[0]: hard_upper needs a positive amount",
        ),
        ({"annotations": [], "annotator": 3}, "annotator: must be an object"),
    ],
)
def test_wrong_annotations_are_named(
    records: list[dict[str, Any]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    document: Any,
    message: str,
) -> None:
    source = write(tmp_path / "raw.json", records)
    made = write(tmp_path / "ceilings.json", document)
    found = complaint(
        capsys, "clean", str(source), str(tmp_path / "out"), *SMALL, "--annotations", str(made)
    )
    assert f"{made}: {message}" in found
    assert not (tmp_path / "out").exists()


TRACE = {"job": {"task_id": 0}, "steps": [{"step_index": 1, "action": "search[x]"}]}


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        (1, "[0]: must be an object"),
        ({"steps": []}, "[0].job: is missing"),
        ({**TRACE, "job": {"task_id": "0"}}, "[0].job.task_id: must be an integer"),
        ({"job": {"task_id": 0}}, "[0].steps: is missing"),
        ({**TRACE, "steps": 3}, "[0].steps: must be a list"),
        ({**TRACE, "steps": [3]}, "[0].steps[0]: must be an object"),
        ({**TRACE, "steps": [{"step_index": 1, "action": 3}]}, "[0].steps[0].action"),
        ({**TRACE, "final": []}, "[0].final: must be an object"),
        ({**TRACE, "provenance": {"environment": 3}}, "[0].provenance.environment"),
        ({**TRACE, "provenance": {"environment": {"profile": []}}}, "environment.profile"),
        ({**TRACE, "provenance": {"environment": {"profile": "x"}}}, "unknown shop profile"),
        ({**TRACE, "job": {"task_id": 10**9}}, "unknown task"),
        ([], "the file holds no trace"),
    ],
)
def test_a_trace_that_is_none_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], trace: Any, message: str
) -> None:
    path = write(tmp_path / "trace.json", trace)
    assert message in complaint(capsys, "replay", str(path))


def test_a_trace_without_provenance_is_a_published_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "trace.json", {**TRACE, "provenance": None, "final": None})
    assert main(["shop", "replay", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 1


def test_a_damaged_trace_file_names_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "traces.jsonl.gz"
    line = json.dumps(TRACE).encode() + b"\n"
    path.write_bytes(gzip.compress(line + b"{"))
    assert "line 2: damaged trace file" in complaint(capsys, "replay", str(path))
    path.write_bytes(gzip.compress(line * 50)[:-9])
    assert "damaged trace file" in complaint(capsys, "replay", str(path))


def served(address: str) -> tuple[str, ...]:
    """The options that name a model's server."""
    return ("--base-url", address, "--model", "m")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("serve", "--port", "99999"), "--port: a port is a number from 0 to 65535"),
        (("serve", "--slots", "0"), "--slots: a service needs at least one slot"),
        (("serve", "--lease-ttl", "-1"), "--lease-ttl: must be a positive number"),
        (("serve", "--lease-ttl", "nan"), "--lease-ttl: must be a positive number"),
        (("serve", "--reset-wait", "inf"), "--reset-wait: must be a number of seconds"),
        (("serve", "--workers", "0"), "--workers: needs 1 to 64 workers"),
        (("serve", "--workers", "65"), "--workers: needs 1 to 64 workers"),
        (("serve", "--host", "0.0.0.0"), "--host: a service that others can reach needs a token"),
        (("serve", "--token-env", "NOT_SET_AT_ALL"), "NOT_SET_AT_ALL: the environment variable"),
        (("audit", "--catalogue-sha256", "abc"), "--catalogue-sha256: neither a SHA-256"),
        (("audit", "--catalogue-sha256", "0" * 64), "expected_sha256: belongs to a catalogue"),
        (("audit", "--splits", "x.json"), "splits: belongs to a catalogue file"),
        (("audit", "--split", "nope"), "split: unknown split (found 'nope')"),
        (("audit", "--catalogue", "none.json"), "none.json: no such file"),
        (("generate", "x.json", "--products", "0"), "products: a catalogue has at least one"),
        (("generate", "x.json", "--noise", "2"), "noise: a probability is from 0 to 1"),
        (("replay", "none.jsonl"), "none.jsonl: no such file"),
        (("annotate", "none.json", "o.json", *served("x")), "--base-url: must be an http"),
        (("annotate", "none.json", "o.json", *served("http://x/v1")), "no such file"),
    ],
)
def test_impossible_options_are_named(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    found = complaint(capsys, *words)
    assert message in found
    assert re.search(r"\. [A-Z]|\)$", found.strip())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [10, 1000, -1])
def test_a_truncated_archive_loads_nothing(
    records: list[dict[str, Any]], tmp_path: Path, size: int
) -> None:
    path = tmp_path / "items.json.gz"
    path.write_bytes(gzip.compress(json.dumps(records).encode())[:size])
    with pytest.raises(InputError, match=r"\[\d+\]: damaged archive") as caught:
        load_world("compat", catalogue=path)
    assert caught.value.remedy == "Fetch the archive again and compare its SHA-256"


def test_an_axis_that_nothing_satisfies_is_reported_with_a_remedy(
    records: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = json.loads(json.dumps(records))
    changed[7]["customization_options"]["套餐"] = []
    path = write(tmp_path / "items.json", changed)
    assert main(["shop", "audit", "--catalogue", str(path)]) == 0
    line = capsys.readouterr().err
    assert f"{path}: axis_without_values: 1 records, first [7] {changed[7]['asin']} 套餐" in line
    assert "can never be bought: give the axis values, or null" in line
