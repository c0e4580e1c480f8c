"""Why a group failed: the label that decides whether the analyst looks at it.

A group that was scored and failed throughout gets one more episode with the whole curriculum's
text, outside of training. What that retry does splits missing internalisation (the text helps, the
weights do not know it yet) from a skill that does not suffice (work for the analyst). A pending
label is a queue entry, not a verdict. Specification: training.md §4.7.
"""

from __future__ import annotations

from typing import Any, Literal

from trainer.canonical import utc_now
from trainer.grpo.groups import Group, Outcome
from trainer.skills.curriculum import Curriculum

SCHEMA = "shopsimrl-training-failure-triage-v1"
Classification = Literal[
    "environment_or_runtime_error",
    "model_internalization_deficit",
    "full_skill_failure_pending_analysis",
    "all_wrong_retry_disabled",
    "not_frontier",
]


def needs_retry(group: Group, *, retry_enabled: bool) -> bool:
    """Whether the group gets its full-skill retry."""
    return retry_enabled and group.all_wrong


def classify(group: Group, retry: Outcome | None, *, retry_enabled: bool) -> Classification:
    """The label of a finished group; ``retry`` is its full-skill episode, if one was played."""
    if not group.all_scored:
        return "environment_or_runtime_error"
    if not group.all_wrong:
        return "not_frontier"
    if not retry_enabled:
        return "all_wrong_retry_disabled"
    if retry is None:
        raise ValueError(f"group {group.group_index} failed throughout but was not retried")
    if not retry.scored:
        return "environment_or_runtime_error"
    if retry.success:
        return "model_internalization_deficit"
    return "full_skill_failure_pending_analysis"


def triage_record(
    group: Group,
    retry: Outcome | None,
    classification: Classification,
    curriculum: Curriculum,
    *,
    traces_path: str,
) -> dict[str, Any]:
    """The published ``triage.json`` of a group; ``traces_path`` is where its traces lie."""
    return {
        "schema_version": SCHEMA,
        "created_at": utc_now(),
        "group_index": group.group_index,
        "curriculum": curriculum.identity(),
        "assignment": group.treatment.to_record(curriculum, group.group_index),
        "training_rollouts": [
            {"sample_index": index, **_outcome_record(outcome)}
            for index, outcome in zip(group.sample_indices, group.outcomes, strict=True)
        ],
        "all_wrong": group.all_wrong,
        "classification": classification,
        "full_skill_retry": (
            None if retry is None else {"trace_path": traces_path, **_outcome_record(retry)}
        ),
    }


def _outcome_record(outcome: Outcome) -> dict[str, Any]:
    return {
        "episode_id": outcome.trace["episode_id"],
        "reward": dict(outcome.reward),
        "scored": outcome.scored,
    }
