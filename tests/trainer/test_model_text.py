"""What a model wrote becomes values that every file can hold, or nothing."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.canonical import fingerprint
from trainer.model_text import DEEPEST, read_object, whole_text

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=20)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        '{"a": ' + "9" * 5000 + "}",
        '{"a": 9223372036854775808}',
        '{"a": ' + "[" * 100_000,
        '{"a": ' + "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1) + "}",
        "[1]",
        '"a"',
        "{",
        "",
    ],
)
def test_what_is_no_object_of_json_is_none(text: str) -> None:
    assert read_object(text) is None


def test_halves_of_surrogate_pairs_are_joined_or_replaced() -> None:
    assert whole_text("\ud83d" + "\ude00") == "\U0001f600"
    assert whole_text("a\udc00b 中") == "a\ufffdb 中"
    assert read_object('{"\\ud800": ["\\udfff"], "x": "\\ud83d\\ude00"}') == {
        "\ufffd": ["\ufffd"],
        "x": "\U0001f600",
    }


@settings(max_examples=200, deadline=None)
@given(ANY_TEXT)
def test_whole_text_can_be_written_and_changes_no_text_that_could_be(text: str) -> None:
    whole = whole_text(text)
    whole.encode()
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    assert whole == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(ANY_TEXT, JSON, max_size=3))
def test_an_object_that_was_read_can_be_hashed_and_written(value: dict[str, Any]) -> None:
    read = read_object(json.dumps(value))
    if read is not None:
        fingerprint(read)
        json.dumps(read, ensure_ascii=False, allow_nan=False).encode()
        assert orjson.loads(orjson.dumps(read)) == read
