"""Split files (environment.md §1.8)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainer.errors import InputError
from trainer.shop.splits import load_splits, task_ids_sha256

PUBLISHED = {
    "train": (3726, "6dd57881e170a459770c1977cdf06dd184d4dacab8eb1101ebd52c695a85cac9"),
    "val": (400, "103c72fd5da76870d2406420a8d7eab0c616780cb6fb8ac27875b5424dae872e"),
    "test": (400, "4137a041471b29310c7e349732c55f04e8ea1c9a517cd60475d048ca1466c257"),
}


def write(folder: Path, splits: Any) -> Path:
    path = folder / "splits.json"
    path.write_text(json.dumps({"version": "v", "splits": splits}))
    return path


def test_the_published_splits_have_the_published_hashes(published: Path) -> None:
    path = published / "ShopSimulator/shop_env/configs/persona_splits.v1.json"
    loaded = load_splits(path)
    assert loaded.version == "shopsimrl-persona-splits-v1"
    for name, (count, sha256) in PUBLISHED.items():
        split = loaded.split(name)
        assert (len(split.task_ids), split.sha256, split.persona) == (count, sha256, True)


def test_published_splits_are_disjoint_and_cover_the_persona_tasks(published: Path) -> None:
    path = published / "ShopSimulator/shop_env/configs/persona_splits.v1.json"
    ids = [i for split in load_splits(path).splits.values() for i in split.task_ids]
    assert len(ids) == len(set(ids)) == 4526
    assert all(0 <= i < 1343 or 1459 <= i < 4782 for i in ids)


def test_the_hash_covers_the_ascending_list_as_compact_json() -> None:
    assert task_ids_sha256([3, 1, 2]) == task_ids_sha256([1, 2, 3])
    assert task_ids_sha256([]) == (
        "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"
    )


def test_a_range_is_half_open(tmp_path: Path) -> None:
    path = write(tmp_path, {"all": {"start": 2, "end": 5, "persona": None}})
    assert load_splits(path).split("all").task_ids == (2, 3, 4)


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    path = write(tmp_path, {"a": {"task_ids": [1]}, "b": {"task_ids": [2]}})
    with pytest.raises(InputError, match="Available splits: a, b"):
        load_splits(path).split("c")


@pytest.mark.parametrize(
    "split",
    [
        {"task_ids": [1, 1]},
        {"task_ids": [True]},
        {"task_ids": [-1]},
        {"task_ids": ["1"]},
        {"task_ids": 3},
        {"start": 5, "end": 2},
        {"start": 0},
        {"start": 0, "end": 10**12},
        {},
        {"task_ids": [1], "persona": "yes"},
        {"task_ids": [1], "persona": 1},
        {"task_ids": [1], "task_ids_sha256": "0" * 64},
        [],
    ],
)
def test_a_wrong_split_names_file_and_field(tmp_path: Path, split: Any) -> None:
    path = write(tmp_path, {"broken": split})
    with pytest.raises(InputError) as caught:
        load_splits(path)
    assert str(path) in str(caught.value)
    assert "splits.broken" in str(caught.value)
    assert caught.value.remedy


def test_a_file_without_splits_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("[]")
    with pytest.raises(InputError, match="splits"):
        load_splits(path)
