"""Cleaning a raw archive (environment.md §1.7)."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from trainer.errors import InputError
from trainer.shop.archive import Archive
from trainer.shop.data.annotation import Annotation
from trainer.shop.data.cleaning import Cleaner, task_uid, write_cleaned
from trainer.shop.profiles import COMPAT
from trainer.shop.records import load_archive
from trainer.shop.synthetic import SyntheticSettings, generate_records

RECORDS = list(generate_records(SyntheticSettings(products=300, seed=11)))


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    path = tmp_path / "raw" / "items.json"
    path.parent.mkdir()
    path.write_text(json.dumps(RECORDS, ensure_ascii=False))
    return path


def test_ids_are_given_before_anything_is_dropped() -> None:
    cleaner = Cleaner()
    cleaned = list(cleaner.clean(RECORDS))
    assert len(cleaner.exclusions) > 3
    assert len(cleaned) + len(cleaner.exclusions) == 300
    for record in cleaned:
        assert record["instructions"][0]["task_id"] == record["source_product_index"]
        assert RECORDS[record["source_product_index"]]["asin"] == record["asin"]


def test_products_with_two_price_axes_are_excluded_with_a_reason() -> None:
    cleaner = Cleaner()
    list(cleaner.clean(RECORDS))
    first = cleaner.exclusions[0]
    assert list(first) == [
        "source_product_index",
        "asin",
        "task_ids",
        "reason",
        "price_affecting_axes",
    ]
    assert first["reason"] == "multiple_price_affecting_axes"
    assert len(first["price_affecting_axes"]) == 2
    assert first["task_ids"] == [first["source_product_index"]]


def test_the_uid_is_the_hash_of_the_content() -> None:
    text = '["932040992888",0,"想买"]'
    assert task_uid("932040992888", 0, "想买") == (
        "shopsim-" + hashlib.sha256(text.encode()).hexdigest()[:24]
    )


def test_annotated_ceilings_go_to_persona_tasks_and_others_stay_open() -> None:
    persona = next(i for i, r in enumerate(RECORDS) if r.get("user_persona"))
    plain = next(i for i, r in enumerate(RECORDS) if not r.get("user_persona"))
    notes = {i: Annotation(i, "approximate_upper", 100, "x") for i in (persona, plain)}
    cleaner = Cleaner(notes)
    by_index = {r["source_product_index"]: r for r in cleaner.clean(RECORDS)}
    assert by_index[persona]["instructions"][0]["price_upper"] == 110.0
    assert by_index[plain]["instructions"][0]["price_upper"] is None
    assert cleaner.kinds["approximate_upper"] == 1


def test_a_short_text_must_come_with_a_persona_and_only_with_one() -> None:
    plain: dict[str, Any] = next(r for r in RECORDS if not r.get("user_persona"))
    task = {**plain["instructions"][0], "instruction_simple": "x"}
    with pytest.raises(InputError, match="exactly when the product has a persona"):
        list(Cleaner().clean([{**plain, "instructions": [task]}]))


def test_price_constraint_is_removed() -> None:
    record = {**RECORDS[0]}
    record["instructions"] = [{**record["instructions"][0], "price_constraint": 5}]
    (cleaned,) = Cleaner().clean([record])
    assert "price_constraint" not in cleaned["instructions"][0]


def test_the_output_is_byte_identical_and_described_by_its_manifest(
    raw: Path, tmp_path: Path
) -> None:
    before = raw.read_bytes()
    first = write_cleaned(raw, tmp_path / "a")
    second = write_cleaned(raw, tmp_path / "b")
    assert first == second
    data = (tmp_path / "a" / "catalogue.cleaned.json.gz").read_bytes()
    assert data == (tmp_path / "b" / "catalogue.cleaned.json.gz").read_bytes()
    assert first["archive_sha256"] == hashlib.sha256(data).hexdigest()
    text = gzip.decompress(data)
    assert text.endswith(b"]\n")
    assert first["data_sha256"] == hashlib.sha256(text).hexdigest()
    assert first["schema_version"] == "shopsimulator-cleaned-v2"
    assert first["product_count"] == first["task_count"] == 300 - first["excluded_product_count"]
    assert raw.read_bytes() == before


def test_the_cleaned_archive_is_a_catalogue_with_the_same_ids(raw: Path, tmp_path: Path) -> None:
    manifest = write_cleaned(raw, tmp_path / "out")
    data = load_archive(
        tmp_path / "out" / "catalogue.cleaned.json.gz",
        COMPAT,
        expected_sha256=manifest["data_sha256"],
    )
    assert len(data.catalogue) == manifest["product_count"]
    assert all(task.source_product_index == i for i, task in data.tasks.items())
    assert all(task.task_uid.startswith("shopsim-") for task in data.tasks.values())
    assert set(data.tasks) == {
        record["instructions"][0]["task_id"]
        for record in Archive(tmp_path / "out" / "catalogue.cleaned.json.gz")
    }


def test_nothing_is_written_beside_the_source_or_from_a_damaged_one(
    raw: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="output folder"):
        write_cleaned(raw, raw.parent)
    raw.write_bytes(raw.read_bytes()[:-100])
    with pytest.raises(InputError):
        write_cleaned(raw, tmp_path / "out")
    assert not (tmp_path / "out").exists()
