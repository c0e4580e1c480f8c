"""What a request says, checked (environment.md §5.3). Unknown keys are ignored, as published.

Our additions are optional: ``idempotency_key`` and ``owner`` on reset, ``sequence`` on interact and
terminate, a structured ``call`` beside the action text, and the action ``renew``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from trainer.shop.service.errors import ServiceError
from trainer.shop.types import Action

Mode = Literal["single_turn", "multi_turn"]
ACTIONS = ("reset", "interact", "terminate", "release_one", "release_all", "renew")
_LONGEST_LABEL = 200


@dataclass(frozen=True, slots=True)
class ResetRequest:
    """A wish for a new episode."""

    task_id: int
    persona: bool
    private_goal: bool
    mode: Mode
    key: str
    owner: str


@dataclass(frozen=True, slots=True)
class SlotRequest:
    """A request about a leased slot. ``sequence`` is None when the client does not number."""

    slot: int
    lease_id: str
    sequence: int | None


def read_body(body: bytes) -> dict[str, Any]:
    """The JSON object of a request with a known action."""
    try:
        request = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ServiceError("bad_json", f"the body is not JSON: {error}") from error
    if not isinstance(request, dict):
        raise ServiceError("bad_request", "the body must be a JSON object")
    if request.get("action") not in ACTIONS:
        raise ServiceError("unknown_action", f"action must be one of {', '.join(ACTIONS)}")
    return request


def read_reset(request: Mapping[str, Any]) -> ResetRequest:
    if request.get("env_idx") is not None:
        raise ServiceError("bad_request", "a reset does not name a slot; it gets one")
    task_id = request.get("idx")
    if not _is_integer(task_id):
        raise ServiceError("bad_request", "idx must be an integer task id")
    mode = request.get("interaction_mode", "single_turn")
    if mode not in ("single_turn", "multi_turn"):
        raise ServiceError("bad_request", "interaction_mode must be single_turn or multi_turn")
    return ResetRequest(
        task_id=cast(int, task_id),
        persona=_flag(request, "if_persona"),
        private_goal=_flag(request, "include_private_goal"),
        mode=mode,
        key=_label(request, "idempotency_key"),
        owner=_label(request, "owner"),
    )


def read_slot(request: Mapping[str, Any]) -> SlotRequest:
    slot, lease_id = request.get("env_idx"), request.get("lease_id")
    if not _is_integer(slot) or not isinstance(lease_id, str) or not lease_id:
        raise ServiceError("bad_request", "env_idx (integer) and lease_id (text) are needed")
    sequence = request.get("sequence")
    if sequence is not None and (not _is_integer(sequence) or cast(int, sequence) < 1):
        raise ServiceError("bad_request", "sequence must be an integer from 1")
    return SlotRequest(cast(int, slot), lease_id, sequence)


def read_call(request: Mapping[str, Any]) -> Action | None:
    """The structured action ``{"call": {"name": …, "argument": …}}``, if there is one."""
    call = request.get("call")
    if call is None:
        return None
    name = call.get("name") if isinstance(call, Mapping) else None
    if name not in ("search", "click"):
        raise ServiceError("bad_request", "call.name must be search or click")
    argument = call.get("argument")
    if not isinstance(argument, str):
        raise ServiceError("bad_request", "call.argument must be a text")
    return Action(name, argument)


def _flag(request: Mapping[str, Any], name: str) -> bool:
    value = request.get(name, False)
    if not isinstance(value, bool):
        raise ServiceError("bad_request", f"{name} must be true or false")
    return value


def _label(request: Mapping[str, Any], name: str) -> str:
    value = request.get(name, "")
    if not isinstance(value, str) or len(value) > _LONGEST_LABEL:
        raise ServiceError(
            "bad_request", f"{name} must be a text of at most {_LONGEST_LABEL} characters"
        )
    return value


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
