"""One trace → one typed row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from intraskill_web.episodes.models import Episode
from intraskill_web.experiments.models import Experiment, Round
from trainer.rollout.traces import score
from trainer.shop.types import REWARD_PARTS

ERROR_LENGTH = 300


def episode_row(
    trace: Mapping[str, Any],
    *,
    experiment: Experiment,
    round_: Round | None,
    purpose: str,
    arm: str,
    path: str,
    line: int,
    group: Mapping[str, Any] | None = None,
) -> Episode:
    """The row of a trace. ``group`` is its line of ``groups.jsonl``, in training."""
    job, final = trace["job"], trace.get("final")
    reward = score(final)
    training = trace.get("training") or {}
    skills = [storable(chunk["skill_id"]) for chunk in trace["selected_skills"]]
    steps = trace["steps"]
    error = trace.get("error")
    retry = training.get("purpose") == "retry"
    return Episode(
        experiment=experiment,
        round=round_,
        purpose="retry" if retry else purpose,
        arm=arm,
        episode_id=storable(trace["episode_id"]),
        status=trace["status"],
        step=training.get("rollout_step"),
        group_index=training.get("group_index"),
        sample_id=job["sample_id"],
        task_id=job["task_id"],
        split=job["split"],
        treatment_mode=_mode(trace, arm),
        skill_ids=skills,
        skill_count=len(skills),
        scored=reward is not None,
        reward=reward["reward"] if reward else None,
        success=reward["r_success"] == 1.0 if reward else None,
        **{part: reward.get(part) if reward else None for part in REWARD_PARTS},
        termination=(final or {}).get("termination_reason") or "",
        turns=len(steps),
        tokens=(trace.get("tokens") or {}).get("sampled"),
        invalid_actions=sum(_was_invalid(step) for step in steps),
        protocol_errors=sum("protocol_error" in step for step in steps),
        error=storable(f"{error['type']}: {error['message']}")[:ERROR_LENGTH] if error else "",
        instruction=storable((trace.get("reset") or {}).get("task_instruction") or ""),
        path=path,
        line=line,
        **_of_group(group, job["sample_id"], retry=retry),
    )


def storable(text: str) -> str:
    """``text`` as every database takes it: no NUL, no half of a surrogate pair."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _mode(trace: Mapping[str, Any], arm: str) -> str:
    assignment = trace["provenance"]["skills"].get("assignment")
    mode = assignment.get("mode") if isinstance(assignment, Mapping) else None
    return str(mode or arm)


def _was_invalid(step: Mapping[str, Any]) -> bool:
    feedback = (step.get("environment") or {}).get("action_feedback") or {}
    return feedback.get("valid") is False


def _of_group(group: Mapping[str, Any] | None, sample_id: int, *, retry: bool) -> dict[str, Any]:
    """What the group's line adds; a retry never has an advantage and is never admitted."""
    if group is None:
        return {}
    row: dict[str, Any] = {"triage": group["classification"], "admitted": False}
    if retry:
        return row
    row["admitted"] = group["admitted"]
    if group["advantages"] is not None:
        row["advantage"] = group["advantages"][group["sample_indices"].index(sample_id)]
    return row
