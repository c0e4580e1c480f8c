"""From the slim trace layout back to the published one, where every step repeats its pages.

What the slim layout leaves out follows from what it keeps, so nothing is lost: the conversation
from the prompt and the steps, a step's page from the next step, its tools from the state before it.
Specification: environment.md §6.1, §6.3.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trainer.rollout import prompts
from trainer.rollout.traces import LAYOUT
from trainer.shop.tools import tools_for

Record = dict[str, Any]


def expand(trace: Mapping[str, Any]) -> Record:
    """The trace in the published layout; one that already is comes back as it was."""
    if trace.get("layout") != LAYOUT:
        return dict(trace)
    full = {key: value for key, value in trace.items() if key != "layout"}
    word_surface = trace["provenance"]["prompt"]["prompt_version"] == prompts.WORD_PROMPT_VERSION
    full["reset"] = {**trace["reset"], "observation": _first_page(trace)}
    full["conversation"] = conversation_of(trace)
    full["steps"] = []
    state = trace["reset"]["observation_state"]
    for index, step in enumerate(trace["steps"]):
        tools = [] if word_surface else tools_for(state)
        expanded = {**step, "tools": tools}
        if step["environment"] is not None:
            page = _text_after(trace, index)
            expanded["environment"] = {**step["environment"], "observation": page}
            state = step["environment"]["observation_state"]
        full["steps"].append(expanded)
    return full


def conversation_of(trace: Mapping[str, Any]) -> list[Record]:
    """Every message of the episode in order, as the policy saw and wrote them."""
    messages = [dict(message) for message in trace["conversation"]]
    for index, step in enumerate(trace["steps"]):
        messages.append(_assistant(step))
        text = step.get("protocol_feedback")
        if text is None and step["environment"] is not None and not step["environment"]["done"]:
            text = _text_after(trace, index)
        if text is not None:
            messages += _answers(trace, step, text)
    return messages


def _assistant(step: Mapping[str, Any]) -> Record:
    model = step["model"]
    message: Record = {"role": "assistant", "content": model["content"]}
    if model["tool_calls"]:
        message["tool_calls"] = [
            {
                "id": call["call_id"],
                "type": "function",
                "function": {
                    "name": call["name"],
                    "arguments": json.dumps(call["arguments"], ensure_ascii=False, sort_keys=True),
                },
            }
            for call in model["tool_calls"]
        ]
    return message


def _answers(trace: Mapping[str, Any], step: Mapping[str, Any], text: str) -> list[Record]:
    calls = step["model"]["tool_calls"]
    words = trace["provenance"]["prompt"]["prompt_version"] == prompts.WORD_PROMPT_VERSION
    if words or not calls:
        return [{"role": "user", "content": text}]
    return [{"role": "tool", "tool_call_id": call["call_id"], "content": text} for call in calls]


def _text_after(trace: Mapping[str, Any], index: int) -> str:
    """The page that followed a step."""
    if index + 1 < len(trace["steps"]):
        return str(trace["steps"][index + 1]["observation"])
    return str(trace["final"]["observation"])


def _first_page(trace: Mapping[str, Any]) -> str:
    """The home page, which the function surface shows below the task."""
    text = str(trace["conversation"][-1]["content"])
    task = f"{prompts.TASK_LABEL}\n{trace['reset']['task_instruction']}\n\n"
    return text.removeprefix(task)
