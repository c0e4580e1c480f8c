"""What of a trace is private to those who judge, and the trace without it. Pure.

The shop's last answer carries the whole goal (environment.md §1.4), and so do parts of its reward
detail: the ceiling, whether the target was bought, how many attributes were met. The reward parts
themselves are open. An allowlist, so that what a shop adds one day is private until it is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OPEN_DETAIL = ("reward_version", "termination_reason")  # beside every r_*
PRIVATE = frozenset(
    {"goal", "goal_options", "private_task_instruction", "reason_key", "target_asin", "answer"}
)
INSTRUCTION = "instruction_text"  # of the product that was bought: the goal's, where that was it
REASONING = "__reasoning__"  # of a persona


def public(trace: Mapping[str, Any]) -> dict[str, Any]:
    """``trace`` without anything private; it is left as it is, whatever its shape."""
    kept = {key: value for key, value in trace.items() if key not in PRIVATE}
    for name in ("final", "reset"):
        if isinstance(trace.get(name), Mapping):
            kept[name] = public_answer(trace[name])
    if isinstance(trace.get("steps"), list):
        kept["steps"] = [_step(step) for step in trace["steps"]]
    return kept


def public_answer(answer: Mapping[str, Any]) -> dict[str, Any]:
    """An answer of the shop without anything private."""
    kept = {key: value for key, value in answer.items() if key not in PRIVATE}
    if isinstance(detail := answer.get("reward_detail"), Mapping):
        kept["reward_detail"] = {
            key: value
            for key, value in detail.items()
            if key.startswith("r_") or key in OPEN_DETAIL
        }
    for name, left_out in (("purchase", INSTRUCTION), ("user_persona", REASONING)):
        if isinstance(value := answer.get(name), Mapping):
            kept[name] = {key: item for key, item in value.items() if key != left_out}
    return kept


def _step(step: Any) -> Any:
    environment = step.get("environment") if isinstance(step, Mapping) else None
    if not isinstance(environment, Mapping):
        return step
    return {**step, "environment": public_answer(environment)}
