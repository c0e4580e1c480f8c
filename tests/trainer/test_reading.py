from __future__ import annotations

from pathlib import Path

import pytest

from trainer.errors import InputError
from trainer.files import read_json, read_jsonl
from trainer.reading import Node


@pytest.mark.parametrize("value", [True, None, "1", 10**400, -(10**400), 1e308, float("nan")])
def test_a_number_that_cannot_be_calculated_with_is_refused(value: object) -> None:
    with pytest.raises(InputError, match=r"a\.json: jobs\[3\]\.seed: must be a finite number"):
        Node(value, Path("a.json"), "jobs[3].seed").number()


def test_whole_numbers_and_fractions_are_numbers() -> None:
    assert [Node(value).number() for value in (2, -0.5, 10**99)] == [2.0, -0.5, 1e99]


@pytest.mark.parametrize(
    "text", ['{"a": ', '{"a": NaN}', '{"a": "\\ud800"}', "", "[" * 100_000, '{"a": "\xff"}']
)
def test_a_file_that_is_not_json_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=r"a\.json: not valid JSON"):
        read_json(file)
    file.write_bytes(b"{}\n" + text.encode("latin-1") + b"\n")
    with pytest.raises(InputError, match=r"a\.json: line 2 is not valid JSON"):
        list(read_jsonl(file))


def test_a_character_beyond_the_first_plane_may_be_escaped(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text('"\\ud83d\\ude00"')
    assert read_json(file) == "😀"
