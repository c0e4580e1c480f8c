"""A trace is shown whatever it holds; a good one in full."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intraskill_web.episodes.shop_pages import price_format, priced, shop_page
from intraskill_web.episodes.transcript import transcript
from intraskill_web.episodes.turns import turn_log_probs
from tests.web.factories import CHUNKS
from tests.web.traces import make_trace

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = [
    "steps",
    "final",
    "tokens",
    "conversation",
    "selected_skills",
    "reset",
    "error",
    "layout",
]


def test_a_turn_has_its_call_and_what_came_back() -> None:
    read = transcript(make_trace("e", 1, 0, CHUNKS[:2]))
    first, second = read.turns[:2]
    assert (first.name, first.argument) == ("search", "tarn vintage bottle")
    assert first.observation == "page 1 <b>of the shop</b>"
    assert first.page is not None and first.page.kind == "search_results"
    assert (second.name, second.argument, second.tokens) == ("click", "100000000001", 4)
    assert read.turns[-1].observation == "the end"
    assert read.turns[-1].done


def test_the_treatment_the_persona_and_the_private_goal() -> None:
    read = transcript(make_trace("e", 1, 0, CHUNKS[:2]))
    assert [chunk.skill_id for chunk in read.chunks] == ["brand-first", "next-page"]
    assert read.persona == [("brand", "tarn"), ("size", "s")]
    assert read.goal == [("asin", "100000000001"), ("price_upper", "27")]
    assert read.tokens is not None and read.tokens.sampled == 16


def test_the_published_layout_keeps_only_its_first_two_messages_as_the_prompt() -> None:
    trace = make_trace("e", 1, 0, [])
    del trace["layout"]
    trace["conversation"] += [{"role": "assistant", "content": "x"}] * 3
    assert len(transcript(trace).prompt) == 2


def test_a_protocol_error_shows_its_feedback_instead_of_a_page() -> None:
    trace = make_trace("e", 1, 0, [])
    trace["steps"][1] |= {
        "action": None,
        "environment": None,
        "protocol_error": {"code": "tool_call_count", "message": "one call, please"},
        "protocol_feedback": "exactly one call",
    }
    turn = transcript(trace).turns[1]
    assert (turn.problem, turn.observation, turn.page) == (
        "tool_call_count",
        "exactly one call",
        None,
    )


def test_a_call_is_read_from_the_action_when_the_model_record_has_none() -> None:
    trace = make_trace("e", 1, 0, [])
    trace["steps"][0]["model"]["tool_calls"] = []
    trace["steps"][0]["action"] = "search[a [b] c]"
    assert transcript(trace).turns[0].summary == "search a [b] c"


def test_mean_log_probabilities_a_turn() -> None:
    tokens = {"log_probs": [-1.0, -3.0, -0.5]}
    assert turn_log_probs(tokens, [2, 1]) == [-2.0, -0.5]
    assert turn_log_probs(tokens, [2, None, 1]) == [-2.0, None, -0.5]
    assert turn_log_probs(tokens, [2, 2]) == [None, None]
    assert turn_log_probs({}, [2]) == [None]


def test_a_product_page_knows_what_is_chosen() -> None:
    page = shop_page(
        {
            "page_type": "product_detail",
            "product": {"title": "bottle", "price": "25"},
            "available_options": {"size": ["s", "m"]},
            "selected_options": {"size": "m"},
            "selected_price": 27.5,
        },
        "{} CNY",
    )
    assert page.product is not None and page.product.price == "27.5 CNY"
    assert page.axes[0].values == [("s", False), ("m", True)]


@pytest.mark.parametrize("key", KEYS)
@given(value=json_values)
def test_a_broken_field_never_breaks_the_transcript(key: str, value: Any) -> None:
    trace = make_trace("e", 1, 0, CHUNKS[:1])
    trace[key] = value
    transcript(trace)


@given(value=json_values, other=json_values)
def test_a_broken_step_never_breaks_the_transcript(value: Any, other: Any) -> None:
    fields = ("model", "environment", "protocol_error", "action", "observation", "policy_failure")
    for field in fields:
        trace = make_trace("e", 1, 0, [])
        trace["steps"][0][field] = value
        trace["steps"][1]["model"]["tool_calls"] = other
        trace["steps"][2]["environment"]["observation_state"] = other
        transcript(trace)


@given(json_values)
def test_any_state_makes_some_page(state: Any) -> None:
    for kind in ("search_results", "product_detail", "other"):
        shop_page(
            {
                "page_type": kind,
                "products": state,
                "product": state,
                "available_options": state,
                "selected_options": state,
                "missing_option_axes": state,
            },
            "{} CNY",
        )


def test_a_price_names_the_currency_of_its_shop(settings: Any) -> None:
    settings.INTRASKILL_CURRENCY = "EUR"
    price = price_format({"provenance": {"environment": {"profile": "standard"}}})
    assert (priced("27.5", price), priced(27, price)) == ("27.5 EUR", "27 EUR")
    assert priced(None, price) == ""
    mini = price_format({"provenance": {"environment": {"profile": "mini"}}})
    assert priced(11, mini) == "$11", "as its personas say it"
    assert price_format({"provenance": None}) == "{} EUR"
