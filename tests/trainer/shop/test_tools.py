"""Tools of a page and the meaning of calls (environment.md §2.5, §6.2)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.trainer.shop.factories import product, session, world
from trainer.shop.profiles import STANDARD
from trainer.shop.tools import ToolCallError, action_of, offered, tools_for

TARGET = "932040992888"
HOME: dict[str, Any] = {"search_available": True, "actions": []}


def names(state: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in tools_for(state)]


def test_home_offers_search_only() -> None:
    (tool,) = tools_for(session(world([product()])).observe().state)
    assert tool["type"] == "function"
    parameters = tool["function"]["parameters"]
    assert parameters["required"] == ["query"]
    assert parameters["additionalProperties"] is False
    assert parameters["properties"]["query"]["type"] == "string"
    assert parameters["properties"]["query"]["minLength"] == 1


def test_a_results_page_offers_click_with_every_action_as_enum() -> None:
    state = session(world([product()]), "search:洗衣机").observe().state
    (tool,) = tools_for(state)
    assert tool["function"]["name"] == "click"
    assert tool["function"]["parameters"]["properties"]["value"]["enum"] == state["actions"]


def test_search_stands_before_click() -> None:
    assert names({"search_available": True, "actions": ["x"]}) == ["search", "click"]


def test_a_terminal_page_offers_nothing() -> None:
    shop = world([product(axes={})])
    opened = session(shop, "search:洗衣机", TARGET, "buy now")
    assert tools_for(opened.observe().state) == []


def test_an_abridged_page_lists_no_values_in_its_schema() -> None:
    axes = {"颜色": {f"色{n}": 5 for n in range(200)}}
    shop = world([product(axes=axes)], profile=STANDARD)
    (tool,) = tools_for(session(shop, "search:洗衣机", TARGET).observe().state)
    assert "enum" not in tool["function"]["parameters"]["properties"]["value"]


@pytest.mark.parametrize("actions", ["x", [""], [1], None])
def test_a_malformed_state_is_refused(actions: Any) -> None:
    with pytest.raises(ValueError, match="list of non-empty strings"):
        tools_for({"search_available": False, "actions": actions})


def test_a_call_becomes_a_trimmed_action() -> None:
    assert str(action_of("search", {"query": " 冰箱 "}, HOME)) == "search[冰箱]"
    state = {"search_available": False, "actions": ["next >"]}
    assert str(action_of("click", {"value": " next > "}, state)) == "click[next >]"


def test_a_value_listed_with_blanks_is_taken_verbatim() -> None:
    state = {"search_available": False, "actions": [" 颜色=红"]}
    assert action_of("click", {"value": " 颜色=红"}, state).argument == " 颜色=红"


def test_a_value_outside_the_enum_still_reaches_the_shop() -> None:
    state = {"search_available": False, "actions": ["next >"]}
    assert action_of("click", {"value": "Buy Now"}, state).argument == "Buy Now"


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("click", {"value": "x"}, "unavailable_tool"),
        ("buy", {}, "unavailable_tool"),
        ("search", {}, "invalid_tool_arguments"),
        ("search", {"query": ""}, "invalid_tool_arguments"),
        ("search", {"query": "  "}, "invalid_tool_arguments"),
        ("search", {"query": 3}, "invalid_tool_arguments"),
        ("search", {"query": "x", "page": 2}, "invalid_tool_arguments"),
        ("search", {"value": "x"}, "invalid_tool_arguments"),
    ],
)
def test_calls_that_break_the_protocol_have_a_code(
    name: str, arguments: dict[str, Any], code: str
) -> None:
    with pytest.raises(ToolCallError) as caught:
        action_of(name, arguments, HOME)
    assert caught.value.code == code


def test_offered_names_the_tools() -> None:
    assert offered(HOME) == ["search"]
    assert offered({"search_available": False, "actions": ["x"]}) == ["click"]
