"""Asking for one result until it satisfies its contract, with every broken rule named.

Each repair shows the latest result only, so that the conversation does not grow with its mistakes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from trainer.analyst.compiler.compile import CompilationFailed
from trainer.analyst.endpoint.asking import Conversation
from trainer.analyst.endpoint.client import TransportFailed
from trainer.analyst.endpoint.prompts import REPAIR
from trainer.analyst.endpoint.tools import answers, names_of, one_call, reminder
from trainer.analyst.endpoint.wire import Message
from trainer.progress import check_stop

Check = Callable[[Mapping[str, Any]], list[str]]


def ask_until_valid(
    conversation: Conversation,
    opening: list[Message],
    tool: dict[str, Any],
    check: Check,
    attempts: int,
) -> tuple[dict[str, Any], int]:
    """The arguments of the first valid call, and how many were asked for.

    Raises CompilationFailed after the last attempt, BudgetSpent, ServerRefuses, StopRequested.
    """
    repair: list[Message] = []
    errors: list[str] = []
    for attempt in range(1, attempts + 1):
        check_stop()
        try:
            reply = conversation.ask([*opening, *repair], [tool])
        except TransportFailed as error:
            raise CompilationFailed(str(error)) from error
        call = one_call(reply, names_of([tool]))
        if call.problem is not None or call.arguments is None:
            errors = [reminder(str(call.problem))]
        else:
            errors = check(call.arguments)
            if not errors:
                return call.arguments, attempt
        told = {"message": REPAIR, "errors": errors, "previous_arguments": call.arguments or {}}
        repair = [reply.message(), *answers(reply, as_json(told))]
    raise CompilationFailed(
        f"{attempts} attempts broke the contract, the last: {'; '.join(errors)}"
    )


def as_json(value: object) -> str:
    """Compact JSON, non-ASCII kept."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
