"""A glance at a body finds what reading it finds, and an error says only what it says."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from intraskill_web.episodes import grams
from intraskill_web.episodes.content import sayings
from intraskill_web.episodes.glance import NotCut, some_sayings
from intraskill_web.episodes.words import Words
from tests.web.traces import make_trace


def test_an_error_without_a_message_says_nothing() -> None:
    trace = make_trace("e", 1, 0, []) | {"error": {"type": "Timeout", "message": None}}
    assert [said.text for said in sayings(trace)][-1] == "Timeout"
    asked = Words.of("none")
    assert asked.hit(sayings(trace)) is None
    assert set(asked.terms().text) - set(grams.terms(s.text for s in sayings(trace)).split())


texts = st.text(st.sampled_from('aKk01e-+.\u212a\u0130水杯é"\\ \n'), max_size=8)
pages = st.none() | texts | st.integers(0, 99)
steps = st.lists(
    st.builds(
        lambda said, page, before, error, feedback: {
            "observation": before,
            "model": {"content": said, "tool_calls": [{"name": "go", "arguments": {"q": page}}]},
            "environment": {"observation": page},
            "protocol_error": error,
            "protocol_feedback": feedback,
        },
        texts, pages, pages, st.booleans(), pages,
    ) | st.sampled_from([None, 3, []]),
    max_size=4,
)  # fmt: skip


@given(
    steps=steps | st.sampled_from([None, "水杯", {}]),
    wish=pages,
    end=pages,
    error=st.none() | st.builds(lambda text: {"type": text, "message": None}, texts),
    typed=st.text(st.sampled_from("ak01e-水杯 "), min_size=1, max_size=5),
    escaped=st.booleans(),
)
def test_a_glance_finds_what_reading_the_whole_finds_where_it_finds_it(
    steps: Any, wish: Any, end: Any, error: Any, *, typed: str, escaped: bool
) -> None:
    trace = make_trace("e", 1, 0, [], instruction=wish) | {"steps": steps, "error": error}
    trace["final"] = {"observation": end}
    body = json.dumps(trace, ensure_ascii=escaped).encode("utf-8", "surrogatepass")
    asked = Words.of(typed)
    try:
        glanced = asked.hit(some_sayings(body, asked))
    except NotCut:
        assert not isinstance(steps, list)
        return
    assert glanced == asked.hit(sayings(json.loads(body)))
