"""What the shop answers to an action besides the page (environment.md §2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

Reason = Literal[
    "executed",
    "empty_argument",
    "search_unavailable",
    "already_selected",
    "incomplete_options",
    "unavailable_action",
    "invalid_format",
    "multiple_actions_not_allowed",
]

MESSAGES: dict[Reason, str] = {
    "executed": "操作已执行。",
    "empty_argument": "操作缺少内容，未执行。",
    "search_unavailable": "当前页面不能搜索，请先返回搜索首页。",
    "already_selected": "该规格已经选中，无需重复选择。",
    "incomplete_options": "还有规格未选择，暂时不能购买。",
    "unavailable_action": "当前页面没有这个可点击元素。",
    "invalid_format": "无法识别该操作，未执行。",
    "multiple_actions_not_allowed": "一次只能执行一个操作，未执行。",
}


def feedback(action: str, reason: Reason, missing_axes: Sequence[str] = ()) -> dict[str, Any]:
    """``action_feedback`` for one action."""
    record: dict[str, Any] = {
        "action": action,
        "valid": reason == "executed",
        "reason": reason,
        "message": MESSAGES[reason],
    }
    if reason == "incomplete_options":
        record["missing_option_axes"] = list(missing_axes)
    return record
