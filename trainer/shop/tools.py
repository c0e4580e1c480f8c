"""The tools offered on a page, and what a call to them means (environment.md §2.5, §6.2, §6.8).

A call that breaks the protocol never reaches the shop. A click on something that the page does not
offer does, and comes back as an invalid action: the two count differently.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from trainer.shop.types import Action

ToolCallCode = Literal[
    "unavailable_tool",
    "invalid_tool_arguments",
    "invalid_tool_call",
    "tool_call_count",
    "mixed_content",
]


_SEARCH = "关键词搜索，仅在提供时可用。"
_CLICK = "点击一个可用的按钮、商品或规格，逐字照抄所列的值。"


class ToolCallError(ValueError):
    """A call that breaks the protocol; nothing was executed. ``code`` goes into the feedback."""

    def __init__(self, code: ToolCallCode, message: str = "") -> None:
        super().__init__(message or code)
        self.code: ToolCallCode = code
        self.message = message


def tools_for(state: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Function schemas of the page: ``search`` where it is possible, ``click`` where anything is.

    Empty on a terminal page only. Raises ValueError when ``actions`` is not a list of non-empty
    strings.
    """
    actions = state["actions"]
    if not isinstance(actions, list) or not all(isinstance(a, str) and a for a in actions):
        raise ValueError("observation_state.actions must be a list of non-empty strings")
    tools = []
    if state["search_available"] is True:
        tools.append(_tool("search", "query", _SEARCH, minLength=1))
    if actions:
        listed = {} if state.get("actions_abridged") else {"enum": actions}
        tools.append(_tool("click", "value", _CLICK, **listed))
    return tools


def _tool(name: str, argument: str, description: str, **constraint: Any) -> dict[str, Any]:
    schema = {"type": "string", **constraint, "description": description}
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": {argument: schema},
                "required": [argument],
                "additionalProperties": False,
            },
        },
    }


def offered(state: Mapping[str, Any]) -> list[str]:
    """Names of the tools offered on the page."""
    names = ["search"] if state["search_available"] is True else []
    return [*names, "click"] if state["actions"] else names


def action_of(name: str, arguments: Mapping[str, Any], state: Mapping[str, Any]) -> Action:
    """The action a call stands for. Raises ToolCallError when the call breaks the protocol.

    A value that is listed verbatim is taken as it is, blanks included; any other is trimmed.
    """
    if name not in offered(state):
        raise ToolCallError("unavailable_tool", f"the page does not offer {name!r}")
    argument = "query" if name == "search" else "value"
    value = arguments.get(argument)
    if set(arguments) != {argument} or not isinstance(value, str) or not value.strip():
        raise ToolCallError(
            "invalid_tool_arguments", f"{name} takes exactly one non-blank text, {argument!r}"
        )
    if name == "search":
        return Action("search", value.strip())
    return Action("click", value if value in state["actions"] else value.strip())
