"""The two functions that hand results in, and the reading of a reply as exactly one call."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from trainer.analyst.cards import DEPLOYABLE_TEXTS, PRIVILEGED_IDS, PRIVILEGED_TEXTS, STATUSES
from trainer.analyst.compiler.contract import TEXTS
from trainer.analyst.compiler.restructure import PART_TEXTS, RESTRUCTURINGS
from trainer.analyst.endpoint.prompts import REMINDERS
from trainer.analyst.endpoint.wire import Message, Reply

SUBMIT_CARD, SUBMIT_CANDIDATES = "submit_failure_card", "submit_candidates"
Schema = dict[str, Any]
_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}


def object_of(properties: Schema, required: list[str]) -> Schema:
    """The schema of an object."""
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def function(name: str, description: str, parameters: Schema) -> Schema:
    """A function that the model may call."""
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


def submit_card_tool() -> Schema:
    """``submit_failure_card``."""
    privileged = object_of(
        dict.fromkeys((*PRIVILEGED_IDS, *PRIVILEGED_TEXTS), _TEXT), list(PRIVILEGED_TEXTS)
    )
    target = {"type": ["string", "null"]}
    deployable = object_of(
        {**dict.fromkeys(DEPLOYABLE_TEXTS, _TEXT), "target_chunk_id": target},
        ["failure_mechanism"],
    )
    return function(
        SUBMIT_CARD,
        "提交失败证据卡并结束分析。",
        object_of(
            {
                "status": {"type": "string", "enum": list(STATUSES)},
                "privileged_audit": privileged,
                "deployable_abstraction": deployable,
            },
            ["status", "privileged_audit", "deployable_abstraction"],
        ),
    )


def submit_candidates_tool(*, restructure: bool = False) -> Schema:
    """``submit_candidates``; with ``restructure`` active chunks may be deleted, merged or split."""
    properties: Schema = {
        "operation": {"type": "string", "enum": ["ADD", "REWRITE"]},
        "target_chunk_id": {"type": ["string", "null"]},
        **dict.fromkeys(TEXTS, _TEXT),
        "procedure": _TEXTS,
        "evidence_card_ids": _TEXTS,
    }
    required = ["operation", *TEXTS, "procedure", "evidence_card_ids"]
    if restructure:
        part = {**dict.fromkeys(PART_TEXTS, _TEXT), "procedure": _TEXTS}
        properties |= {
            "operation": {"type": "string", "enum": ["ADD", "REWRITE", *RESTRUCTURINGS]},
            "other_chunk_ids": _TEXTS,
            "parts": {"type": "array", "items": object_of(part, list(part))},
        }
        required = ["operation", "failure_mechanism", "evidence_card_ids"]
    item = object_of(properties, required)
    return function(
        SUBMIT_CANDIDATES,
        "提交合并后的候选规则。",
        object_of(
            {
                "candidates": {"type": "array", "items": item},
                "evidence_only_card_ids": _TEXTS,
            },
            ["candidates", "evidence_only_card_ids"],
        ),
    )


@dataclass(frozen=True, slots=True)
class Call:
    """The one call of a reply, or the code of the first rule that the reply breaks."""

    name: str = ""
    arguments: dict[str, Any] | None = None
    problem: str | None = None


def one_call(reply: Reply, offered: Collection[str]) -> Call:
    """Read a reply as exactly one call of an offered function."""
    if reply.finish_reason == "length":
        return Call(problem="cut_off")
    if len(reply.tool_calls) != 1:
        return Call(problem="tool_call_count")
    requested = reply.tool_calls[0]
    if requested.name not in offered:
        return Call(requested.name, problem="unavailable_tool")
    arguments = requested.parsed()
    if arguments is None:
        return Call(requested.name, problem="invalid_arguments")
    return Call(requested.name, arguments)


def answers(reply: Reply, text: str) -> list[Message]:
    """What follows a reply: one answer to every call in it, or a message when it held none."""
    if not reply.tool_calls:
        return [{"role": "user", "content": text}]
    return [
        {"role": "tool", "tool_call_id": call.call_id, "content": text} for call in reply.tool_calls
    ]


def reminder(code: str) -> str:
    """What a broken rule is answered with."""
    return REMINDERS[code]


def names_of(tools: list[Schema]) -> list[str]:
    """Names of the functions offered."""
    return [tool["function"]["name"] for tool in tools]
