"""The parts of a trace as JSON values (layout: ``traces.py``)."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from trainer.rollout import traces
from trainer.rollout.policy import Message, ModelTurn, ToolCall
from trainer.rollout.types import EpisodeRequest
from trainer.shop.types import StepResult


def head_record(
    request: EpisodeRequest, provenance: Mapping[str, Any], prompt: Sequence[Message]
) -> dict[str, Any]:
    """A trace before its first turn, the keys in the order in which it is written."""
    return {
        "schema_version": traces.SCHEMA,
        "layout": traces.LAYOUT,
        "episode_id": request.episode_id,
        "status": "running",
        "job": request.job.to_record(),
        "provenance": {**provenance, "skills": request.skills},
        "started_at": None,
        "ended_at": None,
        "duration_ms": None,
        "reset": None,
        "selected_skills": [chunk.to_record() for chunk in request.chunks],
        "conversation": [message_record(message) for message in prompt],
        "steps": [],
        "final": None,
        "error": None,
        **request.extra,
    }


def failure_record(stage: str, error: Exception, category: str) -> dict[str, Any]:
    """The ``error`` section of a technical failure."""
    return {
        "stage": stage,
        "type": type(error).__name__,
        "message": str(error),
        "category": category,
        "traceback": "".join(traceback.format_exception(error)),
    }


def step_record(index: int, text: str, turn: ModelTurn) -> dict[str, Any]:
    """A turn as it was sampled, before anything was done with it."""
    usage = dict(turn.usage)
    if turn.token_ids:
        usage["completion_tokens"] = len(turn.token_ids)
    return {
        "step_index": index,
        "observation": text,
        "model": {
            "content": turn.text,
            "reasoning": turn.reasoning,
            "tool_calls": [call_record(call) for call in turn.tool_calls],
            "finish_reason": turn.finish_reason,
            "usage": usage,
            "latency_ms": round(turn.latency_ms, 3),
        },
        "action": None,
        "environment": None,
    }


def call_record(call: ToolCall) -> dict[str, Any]:
    """A decoded call."""
    return {"call_id": call.call_id, "name": call.name, "arguments": dict(call.arguments)}


def message_record(message: Message) -> dict[str, str]:
    """A message of the prompt."""
    record = {"role": message.role, "content": message.content}
    if message.tool_call_id is not None:
        record["tool_call_id"] = message.tool_call_id
    return record


def final_record(result: StepResult) -> dict[str, Any]:
    """The shop's last answer; the only place where the private goal stands."""
    return {
        "done": result.done,
        "reward": result.reward,
        "reward_detail": dict(result.reward_detail),
        "purchase": dict(result.purchase),
        "goal": dict(result.goal),
        "termination_reason": result.termination_reason,
        "observation": result.observation.text,
    }
