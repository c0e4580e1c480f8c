"""Hashes: of the bytes to find damage, of the contents to compare runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from intraskill_web.experiments.flow import new_round
from intraskill_web.experiments.models import Document, Experiment
from jobs import documents
from jobs.plans import plan_of
from jobs.verify import verify
from tests.jobs.traces import trace, training_trace, write_step
from trainer.files import write_json, write_jsonl


def content(path: Path, value: Any, run: Path) -> str:
    write_json(path, value)
    return documents.content_hash(path, run)


def test_times_and_places_do_not_count(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    first = {"created_at": "now", "beta": 0.5, "files": [f"{one}/a"], "deep": {"latency_ms": 1}}
    second = {"created_at": "then", "beta": 0.5, "files": [f"{two}/a"], "deep": {"latency_ms": 2}}
    assert content(one / "a.json", first, one) == content(two / "a.json", second, two)


def test_everything_else_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    values: list[Any] = [{"a": 1}, {"a": 2}, {"b": 1}, {"a": [1]}, {"a": "1"}, {"a": None}]
    assert len({content(path, value, tmp_path) for value in values}) == len(values)


def test_line_files_are_hashed_line_by_line_compressed_or_not(tmp_path: Path) -> None:
    rows = [trace(1), trace(2)]
    write_jsonl(tmp_path / "traces.jsonl", rows)
    write_step(tmp_path, 1, rows)
    plain = documents.content_hash(tmp_path / "traces.jsonl", tmp_path)
    packed = documents.content_hash(tmp_path / "steps" / "step-000001.jsonl.gz", tmp_path)
    assert plain == packed
    slower = [{**row, "duration_ms": 99.0, "started_at": "later"} for row in rows]
    write_jsonl(tmp_path / "traces.jsonl", slower)
    assert documents.content_hash(tmp_path / "traces.jsonl", tmp_path) == plain
    write_jsonl(tmp_path / "traces.jsonl", rows[::-1])
    assert documents.content_hash(tmp_path / "traces.jsonl", tmp_path) != plain


@pytest.fixture
def recorded(experiment: Experiment) -> Experiment:
    round_ = new_round(experiment, 0)
    plan = plan_of(round_)
    write_json(plan.folder / "train" / "manifest.json", {"created_at": "now", "seed": 1})
    for step in (1, 2):
        write_step(plan.folder / "train", step, [training_trace(step, step, 0)])
    documents.save(documents.of_stage(round_, plan, "train"))
    return experiment


def test_verify_confirms_what_is_unchanged(recorded: Experiment) -> None:
    assert verify(recorded) == {
        "experiment": "small",
        "documents": 3,
        "verified": 3,
        "mismatched": [],
    }


def test_verify_finds_a_changed_byte_and_a_missing_file(recorded: Experiment) -> None:
    manifest = recorded.folder / "round-000" / "train" / "manifest.json"
    manifest.write_text(manifest.read_text().replace("1", "2"))
    (recorded.folder / "round-000" / "train" / "steps" / "step-000002.jsonl.gz").unlink()
    result = verify(recorded)
    assert (result["documents"], result["verified"]) == (3, 1)
    problems = {item["path"]: item["problem"] for item in result["mismatched"]}
    assert "recorded was" in problems["round-000/train/manifest.json"]
    assert problems["round-000/train/steps/step-000002.jsonl.gz"] == "is missing"


def test_recording_again_writes_over(recorded: Experiment) -> None:
    round_ = recorded.rounds.get()
    documents.save(documents.of_stage(round_, plan_of(round_), "train"))
    assert Document.objects.count() == 3


def test_files_of_one_kind_give_one_hash(recorded: Experiment) -> None:
    hashes = documents.hashes_of(recorded.rounds.get())
    assert set(hashes) == {"train_manifest", "episodes"}
    assert all(len(value) == 64 for value in hashes.values())
