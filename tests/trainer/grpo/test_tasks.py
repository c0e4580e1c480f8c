"""Task order and task files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from trainer.errors import InputError
from trainer.files import write_json
from trainer.grpo.tasks import TaskOrder, prepare_data, read_split, read_task_data


def test_every_epoch_holds_each_task_once_in_its_own_order() -> None:
    order = TaskOrder(range(50), seed=1)
    first = [order.task(group) for group in range(50)]
    second = [order.task(group) for group in range(50, 100)]
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second
    assert first != list(range(50))


def test_the_order_depends_on_the_seed_and_on_nothing_else() -> None:
    def head(seed: int) -> list[int]:
        order = TaskOrder(range(50), seed)
        return [order.task(group) for group in (3, 120, 4)]

    assert head(1) == head(1)
    assert head(1) != head(2)
    assert TaskOrder((9,), 1).task(1000) == 9


def test_an_empty_task_list_is_refused() -> None:
    with pytest.raises(InputError, match="no task to train on"):
        TaskOrder((), 1)


def split_file(folder: Path, **splits: object) -> Path:
    path = folder / "splits.json"
    write_json(path, {"schema_version": "s", "version": "v1", "splits": splits})
    return path


def test_a_task_file_has_the_published_lines_and_hash(tmp_path: Path) -> None:
    path = split_file(tmp_path, train={"task_ids": [5, 2], "persona": True})
    summary = prepare_data(path, "train", tmp_path / "out.jsonl")
    text = (tmp_path / "out.jsonl").read_bytes()
    assert text == (
        b'{"prompt":"5","metadata":{"schema_version":"shopsimrl-slime-tasks-v1",'
        b'"task_id":5,"split":"train"}}\n'
        b'{"prompt":"2","metadata":{"schema_version":"shopsimrl-slime-tasks-v1",'
        b'"task_id":2,"split":"train"}}\n'
    )
    assert summary["sha256"] == hashlib.sha256(text).hexdigest()
    assert summary["records"] == 2
    assert summary["split"]["persona"] is True
    assert summary["split"]["split_version"] == "v1"
    assert read_task_data(tmp_path / "out.jsonl") == (5, 2)


def test_the_published_train_split_is_prepared_whole(published: Path, tmp_path: Path) -> None:
    path = published / "ShopSimulator" / "shop_env" / "configs" / "persona_splits.v1.json"
    summary = prepare_data(path, "train", tmp_path / "train.jsonl")
    assert summary["records"] == 3726
    _, ids = read_split(path, "train")
    compact = json.dumps(list(ids), separators=(",", ":")).encode()
    assert hashlib.sha256(compact).hexdigest() == (
        "6dd57881e170a459770c1977cdf06dd184d4dacab8eb1101ebd52c695a85cac9"
    )


def test_a_range_is_half_open(tmp_path: Path) -> None:
    path = split_file(tmp_path, val={"start": 3, "end": 6})
    assert read_split(path, "val")[1] == (3, 4, 5)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({}, "needs task_ids"),
        ({"task_ids": [1, 1]}, "unique"),
        ({"task_ids": [True]}, "non-negative integers"),
        ({"task_ids": [-1]}, "non-negative integers"),
        ({"task_ids": [1], "persona": "yes"}, "true, false or null"),
    ],
)
def test_bad_splits_are_refused(tmp_path: Path, block: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_split(split_file(tmp_path, val=block), "val")


def test_an_unknown_split_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Known splits: val"):
        read_split(split_file(tmp_path, val={"task_ids": [1]}), "dev")


def line(prompt: object = 5, **changes: object) -> str:
    metadata = {"schema_version": "shopsimrl-slime-tasks-v1", "task_id": prompt, "split": "train"}
    record = {"prompt": str(prompt), "metadata": {**metadata, **changes}}
    return json.dumps(record) + "\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (line(5) + line(5), "twice"),
        (line(5) + line(6, split="test"), r"line 2: only train tasks.*test"),
        (line(5, schema_version="x"), "line 1: another schema"),
        (line("5"), "line 1: prompt and task_id disagree"),
        (line(5) + "{\n", "line 2: not a task record"),
        (line(5, task_id=6), "disagree"),
    ],
)
def test_a_task_file_that_was_changed_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_task_data(path)
