"""Search finds in what a body keeps apart what reading the whole trace finds, at the same place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intraskill_web.episodes import bodies, grams
from intraskill_web.episodes.content import sayings
from intraskill_web.episodes.pieces import MARK, cut, joined, opened, sayings_from
from intraskill_web.episodes.prepare import parse
from intraskill_web.episodes.traces import printable
from intraskill_web.episodes.words import Hit, Words
from tests.web.traces import make_trace


def test_an_error_without_a_message_says_nothing() -> None:
    trace = make_trace("e", 1, 0, []) | {"error": {"type": "Timeout", "message": None}}
    assert [said.text for said in sayings(trace)][-1] == "Timeout"
    asked = Words.of("none")
    assert asked.hit(sayings(trace)) is None
    assert set(asked.terms().text) - set(grams.terms(s.text for s in sayings(trace)).split())


def kept(line: bytes) -> tuple[bytes, bytes]:
    """The pieces of a line as an ingest makes them."""
    return cut(line, sayings(parse(line)))


def glanced(line: bytes, asked: Words) -> Hit | None:
    """Where the pieces of a line hold the words."""
    index, said = opened(kept(line)[0])
    first = asked.none_before(said)
    return None if first is None else asked.hit(sayings_from(index, said, first))


def read(line: bytes, asked: Words) -> Hit | None:
    """Where the whole trace holds them."""
    return asked.hit(sayings(printable(parse(line))))


texts = st.text(st.sampled_from('aKkiI01e-+.\u212a\u0130水杯é"\\ \n\ud800'), max_size=8)
long_texts = st.builds(lambda text, n: text * n, texts, st.integers(0, 9))
pages = st.none() | long_texts | st.integers(0, 99) | st.just(10**30)
steps: st.SearchStrategy[list[Any]] = st.lists(
    st.builds(
        lambda said, thought, page, before, error, feedback: {
            "observation": before,
            "model": {
                "content": said,
                "reasoning": thought,
                "tool_calls": [{"name": "go", "arguments": {"q": page}}],
            },
            "environment": {"observation": page},
            "protocol_error": error,
            "protocol_feedback": feedback,
        },
        long_texts, pages, pages, pages, st.booleans(), pages,
    ) | st.sampled_from([None, 3, []]),
    max_size=4,
)  # fmt: skip


@given(
    steps=steps | st.sampled_from([None, "水杯", {}]),
    wish=pages,
    end=pages,
    error=st.none() | st.builds(lambda text: {"type": text, "message": None}, texts),
    typed=st.text(st.sampled_from('akié01e-水杯" \\?'), min_size=1, max_size=5),
    escaped=st.booleans(),
)
def test_pieces_hold_what_the_whole_holds_where_it_holds_it_and_make_the_line_again(
    steps: Any, wish: Any, end: Any, error: Any, *, typed: str, escaped: bool
) -> None:
    trace = make_trace("e", 1, 0, [], instruction=wish) | {"steps": steps, "error": error}
    trace["final"] = {"observation": end}
    line = json.dumps(printable(trace) if not escaped else trace, ensure_ascii=escaped).encode()
    if asked := Words.of(typed):
        assert glanced(line, asked) == read(line, asked)
    pieces = kept(line)
    assert joined(*pieces) == line
    assert bodies.decompress(bodies.compress(pieces[1], pieces[0])) == line


def test_half_a_pair_beside_an_integer_of_thirty_digits_is_found_as_the_page_shows_it() -> None:
    trace = make_trace("e", 1, 0, [], content="before \ud800 after")
    trace["steps"][0]["model"]["tool_calls"] = [{"name": "go", "arguments": {"q": 10**30}}]
    line = json.dumps(trace).encode()
    for typed in ("1" + "0" * 30, '"before ? after"', "go"):
        found = glanced(line, Words.of(typed))
        assert found is not None and found == read(line, Words.of(typed))
    assert glanced(line, Words.of("1e30")) is None


def test_a_line_of_another_encoding_is_kept_whole() -> None:
    line = json.dumps(make_trace("e", 1, 0, [], content="水杯")).encode("utf-16")
    assert MARK in line
    assert kept(line) == (b"", line)
    assert bodies.decompress(bodies.compress(line)) == line


def test_long_texts_are_kept_once() -> None:
    line = json.dumps(make_trace("e", 3, 0, [], content="水杯" * 200), ensure_ascii=False).encode()
    texts, rest = kept(line.replace(b'": ', b'":'))
    assert "水杯".encode() in texts and "水杯".encode() not in rest


@pytest.mark.parametrize("damage", [b"2", b"2\xff\xff\xff\xff", b"2\x02\0\0\0ab"])
def test_a_damaged_body_says_so(damage: bytes) -> None:
    with pytest.raises(OSError, match="damaged"):
        bodies.decompress(damage)
