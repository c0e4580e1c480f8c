"""What one ``generate`` call asks for: refusals first, then the task and the episode to play.

Specification: training.md §4.3, §4.5; session and episode ids are the published ones.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from trainer.engines.slime.groups import OpenGroup
from trainer.grpo.step import episode_id
from trainer.rollout.types import EpisodeJob, EpisodeRequest
from trainer.skills.masks import Treatment, visible_chunks


def refuse(args: Any, sample: Any, sampling_params: Mapping[str, Any], *, evaluation: bool) -> None:
    """Raise for a request that training must not serve (training.md §4.3)."""
    if getattr(args, "partial_rollout", False):
        raise AssertionError("partial rollouts would mix two policies in one episode")
    split = (sample.metadata or {}).get("split", "train")
    if evaluation or split != "train":
        raise ValueError(f"only train tasks are trained on; split {split!r} is the evaluator's")
    if getattr(args, "group_rm", False):
        raise ValueError("group_rm must be off: rewards come from the environment")
    top_p, top_k = sampling_params.get("top_p", 1.0), sampling_params.get("top_k", -1)
    if top_p != 1.0 or top_k != -1:
        raise ValueError(f"top_p must be 1.0 and top_k -1, not {top_p!r} and {top_k!r}")


def task_of(sample: Any) -> int:
    """The task of a Sample: its metadata, else its prompt. Raises ValueError without either."""
    task_id = (sample.metadata or {}).get("task_id")
    if type(task_id) is int:
        return task_id
    try:
        return int(sample.prompt)
    except (TypeError, ValueError):
        raise ValueError(f"sample {sample.index} names no task: {sample.prompt!r}") from None


def session_id(entry: OpenGroup, sample: Any, *, retry: bool) -> str:
    """The key under which the engines route and slime records an episode."""
    state = entry.curriculum.state_id[:12]
    suffix = "-retry" if retry else ""
    return f"shopsim-{state}-{entry.group_index}-{sample.index}{suffix}"


def episode_request(
    args: Any, entry: OpenGroup, sample: Any, given: Treatment, *, retry: bool, step: int | None
) -> EpisodeRequest:
    """The episode of a sibling, or of the group's retry."""
    index = int(sample.index)
    seed = int(getattr(args, "rollout_seed", 42))
    purpose = "retry" if retry else "train"
    return EpisodeRequest(
        job=EpisodeJob(entry.task_id, index, seed, "train"),
        episode_id=episode_id(entry.group_index, index, retry=retry),
        noise_key=f"{purpose}:{seed}:{entry.group_index}:{index}",
        chunks=visible_chunks(entry.curriculum, given),
        skills={
            "curriculum_state_id": entry.curriculum.state_id,
            "assignment": given.to_record(entry.curriculum, entry.group_index),
            "diagnostic_full_skill": retry,
        },
        extra={
            "training": {
                "purpose": purpose,
                "rollout_step": step,
                "group_index": entry.group_index,
            }
        },
    )


def slime_step() -> int | None:
    """The step slime says it is in; None where this slime does not say."""
    module = sys.modules.get("slime.rollout.sample_hooks")
    step = getattr(module, "_current_rollout_id", None)
    return step if isinstance(step, int) else None
