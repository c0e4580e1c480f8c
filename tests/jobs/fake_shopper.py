"""A Python that runs ``sglang.launch_server`` as a model which shops, well where a chunk says so.

Named as ``serving.python`` it is called like an interpreter and serves the built-in standard shop.
"""

from __future__ import annotations

import json
import sys
from itertools import count
from typing import Any

from tests.contracts.shopping_scripts import tasks, world
from tests.jobs import fake_sglang
from tests.jobs.holding import hold

Call = tuple[str, dict[str, str]]
_answers = count(1)
MOST = 4  # tasks of a split that are played; among more, some are asked for in the same words


def plan(task_id: int, *, well: bool) -> list[Call]:
    """The calls of an episode that buys what is wanted, or something of another kind."""
    task = world().task(task_id)
    products = world().catalogue.products
    product = products[task.asin]
    if not well:
        product = next(p for p in products.values() if p.category != product.category)
    wanted = {option.lower() for option in task.goal_options}
    chosen = [
        f"{axis}={next((v for v in values if v in wanted), values[0])}"
        for axis, values in product.options.items()
    ]
    clicks = [product.asin, *chosen, "buy now"]
    return [("search", {"query": product.title}), *(("click", {"value": v}) for v in clicks)]


def answer(body: dict[str, Any]) -> dict[str, Any]:
    """The reply to a chat: the next call of the plan."""
    hold(next(_answers))
    said = json.dumps(body["messages"], ensure_ascii=False)
    played = [*world().split("val")[:MOST], *world().split("test")[:MOST]]
    task = next(t for t in played if world().task(t).instruction_simple in said)
    done = sum(message["role"] == "assistant" for message in body["messages"])
    name, arguments = plan(task, well="Look twice" in said)[done]
    call = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    message = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": f"c{done}", "type": "function", "function": call}],
    }
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return {"choices": [{"message": message, "finish_reason": "tool_calls"}], "usage": usage}


if __name__ == "__main__":
    assert sys.argv[1:3] == ["-m", "sglang.launch_server"], sys.argv
    assert tasks()
    fake_sglang.chat = answer
    fake_sglang.main(sys.argv[3:])
