"""Catalogue files of the published schema (environment.md §1.2–1.4): good, odd and broken ones."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from trainer.errors import InputError
from trainer.shop import archive
from trainer.shop.profiles import COMPAT, STANDARD
from trainer.shop.records import PublishedData, load_archive, load_records
from trainer.shop.world import load_world


def record(asin: str = "932040992888", **changes: Any) -> dict[str, Any]:
    task = {
        "asin": asin,
        "instruction": "想买一台洗衣机，预算500元以内",
        "instruction_simple": "想买一台洗衣机",
        "attributes": ["智能"],
        "instruction_options": ["白色"],
    }
    task.update(changes.pop("task", {}))
    return {
        "asin": asin,
        "title": "智能洗衣机",
        "shop_name": "小天",
        "brand": "原牌",
        "category": "家用电器›洗衣机",
        "attribute": ["智能"],
        "pricing": [199],
        "customization_options": {"颜色": [{"value": " 白色/White ", "price": 199}]},
        "user_persona": {"用户ID": "u", "__reasoning__": "secret"},
        "instructions": [task],
        **changes,
    }


def load(*records: dict[str, Any], profile: Any = COMPAT) -> PublishedData:
    return load_records(records, profile, sha256="x", source="test")


def only(data: PublishedData) -> Any:
    (product,) = data.catalogue.products.values()
    return product


def test_the_shop_name_is_the_brand_and_values_are_rewritten() -> None:
    product = only(load(record()))
    assert product.brand == "小天"
    assert product.options == {"颜色": ("白色 | white",)}
    assert product.option_prices == {"颜色": {"白色 | white": 199}}


def test_the_raw_brand_counts_for_the_search_only() -> None:
    data = load(record())
    assert [asin for asin, _ in data.catalogue.index.search("原牌")] == ["932040992888"]
    assert data.catalogue.index.search("小天") == []


def test_a_null_axis_is_dropped_and_an_empty_one_stays() -> None:
    data = load(record(customization_options={"赠品": None, "套餐": []}))
    assert only(data).options == {"套餐": ()}
    assert [notice.code for notice in data.notices] == ["axis_without_values"]


def test_prices_default_and_are_cut_to_two() -> None:
    assert only(load(record(pricing=[]))).pricing == (100.0,)
    assert only(load(record(pricing=None))).pricing == (100.0,)
    assert only(load(record(pricing=[1, 2, 3]))).pricing == (1, 2)


def test_the_last_entry_of_a_repeated_value_sets_its_price() -> None:
    entries = [{"value": "A", "price": 1}, {"value": "a ", "price": 2}]
    product = only(load(record(customization_options={"x": entries})))
    assert product.options == {"x": ("a",)}
    assert product.option_prices == {"x": {"a": 2}}


@pytest.mark.parametrize("asin", ["nan", "1" * 21, " ", "932040992888"])
def test_unusable_and_repeated_products_are_skipped_with_a_notice(asin: str) -> None:
    data = load(record(), record(asin))
    assert list(data.catalogue.products) == ["932040992888"]
    assert [notice.code for notice in data.notices] == ["product_skipped"]


def test_a_task_without_attributes_disappears_and_a_blank_one_stays() -> None:
    data = load(record(task={"attributes": []}), record("111111111111", task={"attributes": [" "]}))
    assert [item.asin for item in data.tasks.values()] == ["111111111111"]
    assert [notice.code for notice in data.notices] == ["task_without_attributes"]


def test_the_persona_loses_its_hidden_reasoning() -> None:
    (task,) = load(record()).tasks.values()
    assert task.persona == {"用户ID": "u"}


def test_a_hidden_budget_is_found_in_the_full_text() -> None:
    (task,) = load(record()).tasks.values()
    assert (task.price_upper, task.instruction_simple) == (500, "想买一台洗衣机")


@pytest.mark.parametrize(
    ("task", "ceiling"),
    [
        ({"instruction_simple": "预算200元"}, 200),
        ({"price_upper": 100, "instruction": "预算900元"}, 100),
        ({"price_upper": None, "instruction": "预算300元"}, 300),
        ({"price_upper": "", "instruction": "预算300元"}, 300),
        ({"instruction": "想买洗衣机"}, None),
        ({"price_upper": 0}, 0),
    ],
)
def test_the_ceiling_is_stored_or_parsed_never_the_products_price(
    task: dict[str, Any], ceiling: float | None
) -> None:
    (goal,) = load(record(pricing=[9999], task=task)).tasks.values()
    assert goal.price_upper == ceiling


def test_a_missing_short_text_falls_back_to_the_full_one() -> None:
    raw = record(user_persona=None)
    del raw["instructions"][0]["instruction_simple"]
    (task,) = load(raw).tasks.values()
    assert task.instruction_simple == task.instruction
    assert task.persona == {}


def test_stored_ids_are_kept_and_others_are_counted() -> None:
    data = load(record(task={"task_id": 7}), record("111111111111", task={"task_id": 9}))
    assert list(data.tasks) == [7, 9]
    assert list(load(record(), record("111111111111")).tasks) == [0, 1]


def test_the_rule_that_found_the_ceiling_is_known() -> None:
    (task,) = load(record(), profile=STANDARD).tasks.values()
    assert task.price_source == "full:prefix-number"


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (record(task={"price_upper": -1}), "instructions[0].price_upper"),
        (record(task={"price_upper": float("nan")}), "instructions[0].price_upper"),
        (record(task={"price_upper": "viel"}), "instructions[0].price_upper"),
        (record(task={"task_id": -1}), "instructions[0].task_id"),
        (record(task={"task_id": True}), "instructions[0].task_id"),
        (record(task={"instruction": ""}), "instructions[0].instruction"),
        (record(title=None), "title"),
        (record(attribute="智能"), "attribute"),
        (record(attribute=[3]), "attribute"),
        (record(pricing=["5"]), "pricing"),
        (record(pricing=[float("inf")]), "pricing"),
        (record(customization_options=[1]), "customization_options"),
        (record(customization_options={"x": 3}), "customization_options.x"),
        (record(customization_options={"x": [3]}), "customization_options.x[0]"),
        (record(customization_options={"x": [{}]}), "customization_options.x[0].value"),
        (record(instructions=["x"]), "instructions[0]"),
    ],
)
def test_a_broken_record_is_named_with_its_field(raw: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as caught:
        load(record("000000000001"), raw)
    assert caught.value.field == f"[1].{field}"
    assert caught.value.remedy


def test_a_repeated_task_id_is_refused() -> None:
    with pytest.raises(InputError, match="twice"):
        load(record(task={"task_id": 3}), record("111111111111", task={"task_id": 3}))


# --- files


def write(path: Path, records: Any) -> bytes:
    data = json.dumps(records, ensure_ascii=False).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return data


@pytest.mark.parametrize("name", ["items.json", "items.json.gz"])
def test_a_file_is_identified_by_its_decompressed_bytes(tmp_path: Path, name: str) -> None:
    data = write(tmp_path / name, [record(), record("111111111111")])
    loaded = load_archive(tmp_path / name, COMPAT)
    assert len(loaded.catalogue) == 2
    assert loaded.catalogue.sha256 == hashlib.sha256(data).hexdigest()


def test_a_wrong_hash_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "items.json"
    write(path, [record()])
    with pytest.raises(InputError, match="SHA-256 must be 0000"):
        load_archive(path, COMPAT, expected_sha256="0" * 64)


def test_a_truncated_archive_is_one_clear_message(tmp_path: Path) -> None:
    path = tmp_path / "items.json.gz"
    write(path, [record(f"{n:012d}") for n in range(50)])
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InputError, match="damaged archive") as caught:
        load_archive(path, COMPAT)
    assert caught.value.file == str(path)
    assert caught.value.field == "[0]"
    assert caught.value.remedy


def test_a_folder_is_no_archive(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be opened: Is a directory"):
        load_archive(tmp_path, COMPAT)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{}", "[0]: a catalogue is a JSON array"),
        (b"", "[0]: a catalogue is a JSON array"),
        (b"[3]", "[0]: a product record must be an object"),
        (b"[%s", "[1]: expected ',' or ']'"),
        (b"[%s %s]", "[1]: expected ',' or ']'"),
        (b"[%s,%s,]", "[2]: expected a record after ','"),
        (b'[%s,{"a": ', "[1]: broken record: Expecting value"),
        (b'[%s,{"a" 3}]', "[1]: broken record: Expecting ':' delimiter"),
        (b'[%s,{"title": "', "[1]: broken record: Unterminated string"),
        (b'[%s,{"a": NaN}]', "[1]: broken record: NaN is no JSON number"),
        (b'[{"a": ' + b"[" * 100_000, "[0]: broken record: maximum recursion depth"),
        (b'[%s,{"title": "\\ud83d"}]', "[1]: broken record: half of a surrogate pair"),
        (b'[%s,{"title": "\xff"}]', "[0]: damaged archive: 'utf-8' codec can't decode"),
        (b"[] x", "[0]: text after the end"),
    ],
)
def test_text_that_is_no_catalogue_is_named(tmp_path: Path, text: bytes, message: str) -> None:
    path = tmp_path / "items.json"
    path.write_bytes(text.replace(b"%s", json.dumps(record()).encode()))
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        load_archive(path, COMPAT)
    assert caught.value.file == str(path)
    assert caught.value.remedy


def test_whole_surrogate_pairs_are_text(tmp_path: Path) -> None:
    write(tmp_path / "items.json", [record(title="红色🔥")])
    path = tmp_path / "escaped.json"
    path.write_text(json.dumps([record(title="红色🔥")]))
    assert "\\ud83d" in path.read_text()
    (product,) = load_archive(path, COMPAT).catalogue.products.values()
    assert product.title == "红色🔥"


def test_a_record_without_end_is_given_up_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "_LONGEST_RECORD", 1000)
    monkeypatch.setattr(archive, "_CHUNK", 100)
    path = tmp_path / "items.json"
    path.write_text('[{"title": "' + "x" * 100_000)
    reading = archive.Archive(path)
    with pytest.raises(InputError, match="Unterminated string"):
        list(reading)
    assert reading.sha256 == ""


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load_archive(tmp_path / "none.json", COMPAT)


def test_a_world_over_a_file_checks_its_splits(tmp_path: Path) -> None:
    write(tmp_path / "items.json", [record()])
    splits = tmp_path / "splits.json"
    splits.write_text(json.dumps({"splits": {"val": {"task_ids": [0]}}}))
    world = load_world("compat", catalogue=tmp_path / "items.json", splits=splits)
    assert world.split("val") == (0,)
    splits.write_text(json.dumps({"splits": {"val": {"task_ids": [0, 5]}}}))
    with pytest.raises(InputError, match="1 tasks of the split are not in items"):
        load_world("compat", catalogue=tmp_path / "items.json", splits=splits)
