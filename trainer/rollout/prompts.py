"""The texts of the standard prompt: what a language model is told besides task and pages.

Wording is ours; layout and labels are those of environment.md §2.8. A change of any text must
change ``PROMPT_VERSION``: plans compare prompts by identity.
"""

from __future__ import annotations

PROMPT_VERSION = "intraskill-shopping-agent-tools-v1"
SKILL_RENDERER_VERSION = "plain-skill-context-v1"
WORD_PROMPT_VERSION = "intraskill-word-prompt-v1"
ACTION_PROTOCOL = "openai-function-tools-repair-v3"
WORD_ACTION_PROTOCOL = "intraskill-word-actions-v1"

SYSTEM_PROMPT = """你是一名网购助手，在一个模拟商城里替用户完成一次购物。
请同时考虑用户的需求和个人文档：文档里的偏好、预算和习惯同样是要求。
商城里有许多相近的商品，下单前请比较候选商品的类别、属性、规格和价格。
每一轮只调用一个当前提供的函数：
- 只有提供了搜索函数时才能搜索；
- 点击时必须逐字使用当前列出的值；
- 购买前先选好每一个规格。
函数的返回结果就是下一个页面。不要输出任何可见文字，思考请放在思考阶段。"""

PERSONA_LABEL = "用户个人文档："
TASK_LABEL = "购物任务："
SKILL_TITLE = "[可选策略提示]"
SKILL_CAUTION = "以下提示是一般性经验，使用前请对照当前任务和页面核实。"

PROTOCOL_MESSAGES = {
    "tool_call_count": "每一轮必须恰好调用一个函数。",
    "mixed_content": "调用函数时不能同时输出可见文字。",
    "invalid_tool_call": "无法解析这次函数调用。",
    "unavailable_tool": "当前页面没有提供这个函数。",
    "invalid_tool_arguments": "函数参数不符合要求。",
}
PROTOCOL_FALLBACK = "这次回答不符合函数调用协议。"
PROTOCOL_INSTRUCTION = "没有执行任何操作。请重新回答：只调用一个当前提供的函数，不要输出其他文字。"
