"""One trace → the typed columns of its row. Pure.

What cannot be an episode (no job, numbers that are none) is an InputError that names the field;
whatever else is odd in a trace leaves its column empty, for a broken episode must still be found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from intraskill_web.episodes.behaviour_metrics import stored
from intraskill_web.episodes.shop_pages import mapping, number, sequence
from trainer.analysis.behaviour import behaviour
from trainer.errors import InputError
from trainer.reading import Node
from trainer.rollout.traces import SCHEMA, score
from trainer.shop.types import REWARD_PARTS

MOST = 2**31 - 1
UNSTORABLE = re.compile("[\0\ud800-\udfff]")
PUBLISHED_ID = re.compile(r"train-group-(\d{9})-sample-\d{9}")
Values = dict[str, Any]


def episode_values(
    trace: object, *, purpose: str, arm: str, group: Mapping[str, Any] | None = None
) -> Values:
    """The columns of a trace. ``group`` is its line of ``groups.jsonl``, in training.

    An empty ``purpose`` or ``arm`` is read from the trace. Raises InputError.
    """
    node = Node(trace)
    if node["schema_version"].value != SCHEMA:
        raise node["schema_version"].error(f"is not {SCHEMA}")
    if not isinstance(trace, Mapping):
        raise node.error("must be an object")
    job, final, training = node["job"], mapping(trace.get("final")), mapping(trace.get("training"))
    sample_id = job["sample_id"].integer(0, MOST)
    retry = _is_retry(trace, training)
    reward = score(final or None)
    arm = arm or _arm(trace)
    skills = [_id_of(chunk) for chunk in node.get("selected_skills").value or []]
    steps = [step for step in sequence(trace.get("steps")) if isinstance(step, Mapping)]
    values: Values = {
        "purpose": "retry" if retry else purpose or _purpose(trace, arm),
        "arm": arm,
        "episode_id": cut(node["episode_id"].text(), 120),
        "status": cut(trace.get("status"), 12),
        "step": _step(trace, training),
        "group_index": group_index(trace),
        "sample_id": sample_id,
        "task_id": job["task_id"].integer(0, MOST),
        "split": cut(job["split"].string(), 8),
        "treatment_mode": cut(_mode(trace, arm), 32),
        "skill_ids": skills,
        "skill_count": len(skills),
        "scored": reward is not None,
        "reward": reward["reward"] if reward else None,
        "success": reward["r_success"] == 1.0 if reward else None,
        **{part: reward.get(part) if reward else None for part in REWARD_PARTS},
        "termination": cut(final.get("termination_reason"), 24),
        "turns": len(steps),
        "tokens": _count(mapping(trace.get("tokens")).get("sampled")),
        "invalid_actions": sum(map(_was_invalid, steps)),
        "protocol_errors": sum(map(_was_protocol_error, steps)),
        "advantage": None,
        "admitted": None,
        "triage": "",
        "error": _error(mapping(trace.get("error"))),
        "instruction": storable(_string(mapping(trace.get("reset")).get("task_instruction"))),
        "category": cut(_category(steps, final), 80),
        "checkpoint": cut(_checkpoint(trace), 80),
        "started_at": _moment(trace.get("started_at")),
        "duration_ms": number(trace.get("duration_ms")),
        "behaviour": _behaviour(trace),
    }
    values["outcome"] = outcome_of(values)
    if group is not None:
        values |= _of_group(group, sample_id, retry=retry)
    return values


def group_index(trace: object) -> int | None:
    """The group of a training episode: the published layout says it only in the episode's id."""
    training = mapping(mapping(trace).get("training"))
    index = _count(training.get("group_index"))
    match = PUBLISHED_ID.match(_string(mapping(trace).get("episode_id")))
    return int(match[1]) if index is None and match else index


def _step(trace: object, training: Mapping[str, Any]) -> int | None:
    """The training step; published groups are 32 a step (gate-analysis.md §14.1)."""
    if training:
        return _count(training.get("rollout_step"))
    index = group_index(trace)
    return None if index is None else index // 32 + 1


def outcome_of(values: Mapping[str, Any]) -> str:
    """``success``, ``failure`` (of the policy), ``truncated`` or ``technical``."""
    if not values["scored"]:
        return "technical"
    if values["success"]:
        return "success"
    return "truncated" if values["termination"] == "generation_length" else "failure"


def storable(text: str) -> str:
    """``text`` as every database takes it: no NUL, no half of a surrogate pair."""
    if not UNSTORABLE.search(text):
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def cut(value: object, length: int) -> str:
    """``value`` as storable text of at most ``length`` characters; nothing for None."""
    return storable(_string(value))[:length]


def _string(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else str(value)


def _id_of(chunk: object) -> str:
    return cut(mapping(chunk).get("skill_id"), 200)


def _is_retry(trace: Mapping[str, Any], training: Mapping[str, Any]) -> bool:
    skills = mapping(mapping(trace.get("provenance")).get("skills"))
    return training.get("purpose") == "retry" or skills.get("diagnostic_full_skill") is True


def _mode(trace: Mapping[str, Any], arm: str) -> object:
    skills = mapping(mapping(trace.get("provenance")).get("skills"))
    return mapping(skills.get("assignment")).get("mode") or arm


def _arm(trace: Mapping[str, Any]) -> str:
    """The arm of an evaluation by the provider of its chunks."""
    skills = mapping(mapping(trace.get("provenance")).get("skills"))
    if trace.get("training") or "curriculum_state_id" in skills:
        return ""
    known = {"none": "bare", "json_skillbank": "full", "assigned_json_skillbank": "masked"}
    return known.get(str(skills.get("provider")), "")


def _purpose(trace: Mapping[str, Any], arm: str) -> str:
    split = mapping(trace.get("job")).get("split")
    return "test" if split == "test" and arm else arm or "train"


def _was_invalid(step: Mapping[str, Any]) -> bool:
    environment = mapping(step.get("environment"))
    return mapping(environment.get("action_feedback")).get("valid") is False


def _was_protocol_error(step: Mapping[str, Any]) -> bool:
    model = mapping(step.get("model"))
    return bool(step.get("protocol_error") or model.get("protocol_error"))


def _error(error: Mapping[str, Any]) -> str:
    if not error:
        return ""
    return cut(f"{_string(error.get('type'))}: {_string(error.get('message'))}", 300)


def _category(steps: list[Mapping[str, Any]], final: Mapping[str, Any]) -> object:
    """The category of what was bought, else of the product that was looked at last."""
    bought = mapping(final.get("purchase")).get("category")
    if bought:
        return bought
    for step in reversed(steps):
        state = mapping(mapping(step.get("environment")).get("observation_state"))
        category = mapping(state.get("product")).get("category")
        if category:
            return category
    return ""


def _behaviour(trace: Mapping[str, Any]) -> dict[str, Any]:
    """The behaviour of an episode; nothing where a trace is too odd to be walked."""
    try:
        return stored(behaviour(trace))
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}


def _checkpoint(trace: Mapping[str, Any]) -> object:
    model = mapping(mapping(trace.get("provenance")).get("model"))
    return model.get("checkpoint_id") or model.get("model")


def _moment(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None


def _count(value: object) -> int | None:
    """A count that every database holds, or nothing."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= MOST else None


def _of_group(group: Mapping[str, Any], sample_id: int, *, retry: bool) -> Values:
    """What the group's line adds; a retry never has an advantage and is never admitted."""
    row: Values = {"triage": cut(group.get("classification"), 48), "admitted": False}
    if retry:
        return row
    row["admitted"] = group.get("admitted")
    advantages, samples = group.get("advantages"), group.get("sample_indices")
    if advantages is not None and samples is not None:
        try:
            row["advantage"] = advantages[samples.index(sample_id)]
        except (ValueError, IndexError):
            raise InputError(
                "is no sample of its group", field="job.sample_id", value=sample_id
            ) from None
    return row
