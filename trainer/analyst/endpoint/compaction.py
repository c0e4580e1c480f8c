"""A failed trace and live pages, cut down to what an analyst needs (gate-analysis.md §11.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.analyst.redaction import redact

State = Mapping[str, Any]
Row = dict[str, Any]
PRIVATE_PERSONA = ("用户ID", "注册时间", "最后更新时间", "user_id", "registered_at", "updated_at")
PRODUCT_FIELDS = ("title", "brand", "category", "price", "key_attributes")
GOAL_FIELDS = ("asin", "name", "category", "attributes", "goal_options", "price_upper")
PURCHASE_FIELDS = ("name", "category", "attributes", "price", "options")


def compact_trace(trace: Mapping[str, Any]) -> Row:
    """The episode without ids: what was read, thought and done, and how it ended."""
    return {
        "instruction": redact(trace["reset"]["task_instruction"]),
        "persona": public_persona(trace["reset"]["user_persona"]),
        "steps": [_step(step) for step in trace["steps"]],
        "outcome": _outcome(trace["final"]),
    }


def privileged(trace: Mapping[str, Any]) -> Row:
    """The private goal and the purchase with its id: for the analyst's eyes only."""
    final = trace["final"]
    goal, purchase = final["goal"], final["purchase"] or {}
    return {
        "gold": {name: goal.get(name) for name in GOAL_FIELDS},
        "chosen": {name: purchase.get(name) for name in ("asin", *PURCHASE_FIELDS)},
    }


def public_persona(persona: Mapping[str, Any]) -> Row:
    """The persona without who it is and since when."""
    return {name: value for name, value in persona.items() if name not in PRIVATE_PERSONA}


def live_state(state: State) -> Row:
    """A live page: everything that can be clicked, and the products with their ids."""
    page: Row = {"page_type": state["page_type"], "actions": state["actions"]}
    for name in ("page", "total_pages", "search_text"):
        if name in state:
            page[name] = state[name]
    if "products" in state:
        page["products"] = [{"asin": row["asin"], **_product(row)} for row in state["products"]]
    return {**page, **_detail(state)}


def _step(step: Mapping[str, Any]) -> Row:
    model, environment = step["model"], step["environment"]
    row: Row = {
        "observation": redact(step["observation"]),
        "reasoning": redact(model["reasoning"] or ""),
        "action": redact(step["action"] or model["content"] or ""),
    }
    if step.get("protocol_error"):
        row["protocol_error"] = step["protocol_error"]["code"]
    if environment is not None:
        feedback = environment["action_feedback"] or {}
        row["feedback"] = {name: feedback.get(name) for name in ("valid", "reason")}
        row["after"] = {
            "page_type": environment["observation_state"]["page_type"],
            **_detail(environment["observation_state"]),
        }
    return row


def _detail(state: State) -> Row:
    if "product" not in state:
        return {}
    return {
        "product": _product(state["product"]),
        "hidden_attributes": state.get("hidden_attributes"),
        "selected_options": state["selected_options"],
        "missing_option_axes": state["missing_option_axes"],
        "selected_price": state.get("selected_price"),
    }


def _product(row: State) -> Row:
    return {name: row.get(name) for name in PRODUCT_FIELDS}


def _outcome(final: Mapping[str, Any]) -> Row:
    purchase = final["purchase"] or {}
    return {
        "reward": final["reward"],
        "reward_detail": final["reward_detail"],
        "termination_reason": final["termination_reason"],
        "purchase": {name: purchase.get(name) for name in PURCHASE_FIELDS} if purchase else None,
    }
