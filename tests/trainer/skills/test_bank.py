from __future__ import annotations

from pathlib import Path

import pytest

from trainer.canonical import fingerprint
from trainer.errors import InputError
from trainer.files import write_json
from trainer.skills.bank import load_bank, parse_bank, write_bank
from trainer.skills.types import Chunk

GOLDEN = {
    "schema_version": "shopsimrl-skillbank-v1",
    "bank_version": "golden-1",
    "skills": [
        {"skill_id": "a", "content": "rule a", "metadata": {"estimated_effect": 0.2}},
        {"skill_id": "b", "content": "规则 b", "metadata": {"estimated_effect": 0.1}},
    ],
}


def test_a_string_is_fingerprinted_with_its_quotes() -> None:
    expected = "8d47f2eb5f163a2c4e0723a08e375936b7289646708f2e3f3c534d42597dbf18"
    assert fingerprint("rule a") == expected
    assert Chunk("a", "rule a").content_sha256 == expected


def test_the_golden_bank_has_the_golden_hash() -> None:
    expected = "49a4dfb4586c4431059d1b074bfbf7b7b77f2f6e46507935d3ca1625b41229be"
    assert parse_bank(GOLDEN).bank_sha256 == expected


def test_the_published_banks_have_their_published_hashes(published: Path) -> None:
    expected = {
        "cold-start": "28d6084b03d4ea99ccada0232ff3f3f40733b73c316a3fc51e47a83afe362bca",
        "round-000/gate": "38db2dc584c66e9afe7ce81efd00acb5e298589da98da995526058d705b380cf",
        "round-001/gate": "92deab21316a1384f66d8c7cd39fac9c723e7f7706913729b8a3e4cef7fdf1a8",
        "round-002/gate": "e85e947b1f6b6aae434da8f4a04405d41b6ee73cb91627afe7bd4e77213f811a",
    }
    for folder, digest in expected.items():
        bank = load_bank(published / "artifacts" / folder / "selected_skillbank.json")
        assert bank.bank_sha256 == digest
    assert len(bank.chunks) == 8


def test_the_hash_ignores_key_order_and_covers_unknown_keys() -> None:
    turned = {key: GOLDEN[key] for key in reversed(list(GOLDEN))}
    assert parse_bank(turned).bank_sha256 == parse_bank(GOLDEN).bank_sha256
    assert parse_bank({**GOLDEN, "note": 1}).bank_sha256 != parse_bank(GOLDEN).bank_sha256


def test_only_the_literal_false_disables_a_record() -> None:
    skills = [
        {"skill_id": "off", "content": "x", "enabled": False},
        {"skill_id": "zero", "content": "y", "enabled": 0},
        {"skill_id": "on", "content": "z"},
    ]
    bank = parse_bank({"skills": skills})
    assert [chunk.skill_id for chunk in bank.chunks] == ["zero", "on"]
    assert bank.bank_version == "1"


def test_a_scoped_chunk_is_seen_by_its_tasks_only() -> None:
    skills = [
        {"skill_id": "all", "content": "x"},
        {"skill_id": "some", "content": "y", "task_ids": [3, 5]},
    ]
    bank = parse_bank({"skills": skills})
    assert [chunk.skill_id for chunk in bank.for_task(3)] == ["all", "some"]
    assert [chunk.skill_id for chunk in bank.for_task(4)] == ["all"]


@pytest.mark.parametrize(
    ("skills", "field"),
    [
        ({}, "skills"),
        (["x"], "skills[0]"),
        ([{"skill_id": " ", "content": "x"}], "skills[0].skill_id"),
        ([{"skill_id": "a", "content": "\n"}], "skills[0].content"),
        ([{"skill_id": "a", "content": "x", "task_ids": [True]}], "skills[0].task_ids"),
        ([{"skill_id": "a", "content": "x", "metadata": []}], "skills[0].metadata"),
        ([{"skill_id": "a", "content": "x"}, {"skill_id": "a", "content": "y"}], "skills[1]"),
    ],
)
def test_a_broken_record_is_refused_by_name(skills: object, field: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_bank({"skills": skills})
    assert caught.value.field == field


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    chunks = [Chunk("a", "规则", "2", {"estimated_effect": 0.5}), Chunk("b", "rule")]
    written = write_bank(tmp_path / "bank.json", chunks, bank_version="v", metadata={"k": 1})
    read = load_bank(tmp_path / "bank.json")
    assert read == written
    assert list(read.chunks) == chunks


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"bank\.json"):
        load_bank(tmp_path / "bank.json")
    write_json(tmp_path / "bank.json", [])
    with pytest.raises(InputError, match="JSON object"):
        load_bank(tmp_path / "bank.json")
