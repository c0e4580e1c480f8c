"""``summary.json`` of an evaluation: ``shopsimrl-eval-summary-v2``, rebuilt from its files alone.

Only the plan's episodes count, and of each the last record. Means run over completed episodes; what
has no value is null. Specification: environment.md §6.6.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainer.canonical import fingerprint, utc_now
from trainer.files import read_json, read_jsonl
from trainer.means import mean, mean_or_none, rate
from trainer.rollout.traces import is_complete, score
from trainer.rollout.types import EpisodeJob

SCHEMA = "shopsimrl-eval-summary-v2"
TOKEN_KINDS = ("prompt_tokens", "completion_tokens", "total_tokens", "reasoning_tokens")


def summarise(folder: Path) -> dict[str, Any]:
    """The summary of the run in ``folder``. Raises InputError when it has no manifest."""
    manifest, planned, traces = _recorded(folder)
    return {
        "schema_version": SCHEMA,
        "created_at": utc_now(),
        "plan_fingerprint": manifest["plan_fingerprint"],
        "results_sha256": fingerprint([_result_record(trace) for trace in traces]),
        **summarise_traces(traces, requested=len(planned)),
    }


def commonest_failure(folder: Path) -> str:
    """How many episodes of a run failed for technical reasons, and the commonest error's words;
    empty when none did."""
    errors = [trace["error"] for trace in _recorded(folder)[2] if trace["error"]]
    if not errors:
        return ""
    (message, count), *_ = Counter(error["message"] for error in errors).most_common(1)
    return f"{len(errors)} episodes failed; {count} of them: {message}"


def _recorded(folder: Path) -> tuple[dict[str, Any], list[str], list[Mapping[str, Any]]]:
    """The manifest, the ids it plans, and of each played one the last record, in their order."""
    manifest = read_json(folder / "manifest.json")
    planned = [EpisodeJob(**job).episode_id for job in manifest["plan"]["jobs"]]
    latest: dict[str, Mapping[str, Any]] = {}
    wanted = set(planned)
    for trace in read_jsonl(folder / "traces.jsonl"):
        if trace["episode_id"] in wanted:
            latest[trace["episode_id"]] = trace
    return manifest, planned, [latest[episode] for episode in planned if episode in latest]


def summarise_traces(traces: Sequence[Mapping[str, Any]], *, requested: int) -> dict[str, Any]:
    """The statistics of a list of traces, one for each episode."""
    completed = [trace for trace in traces if is_complete(trace)]
    rewards = [reward for trace in completed if (reward := score(trace["final"])) is not None]
    return {
        "counts": {
            "requested": requested,
            "trace_files": len(traces),
            "completed": len(completed),
            "failed": len(traces) - len(completed),
            "scored": len(rewards),
            "coverage": len(completed) / requested if requested else None,
        },
        "primary": {
            "reward_mean": mean_or_none([reward["reward"] for reward in rewards]),
            "reward_sem": _sem([reward["reward"] for reward in rewards]),
            "success_rate": mean_or_none([reward["r_success"] for reward in rewards]),
        },
        "reward_components": _component_means(rewards),
        "behavior": _behavior(completed),
        "cost": _cost(completed),
        "errors": dict(
            sorted(Counter(trace["error"]["type"] for trace in traces if trace["error"]).items())
        ),
    }


def _result_record(trace: Mapping[str, Any]) -> dict[str, Any]:
    """What an episode did and got, which holds no times: the part that repeats must share."""
    actions = [
        [step["model"]["content"], step["action"], step.get("protocol_error")]
        for step in trace["steps"]
    ]
    return {"episode_id": trace["episode_id"], "steps": actions, "final": trace["final"]}


def _component_means(rewards: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = sorted({name for reward in rewards for name in reward if name != "reward"})
    return {
        name: mean(values)
        for name in names
        if (values := [reward[name] for reward in rewards if name in reward])
    }


def _behavior(traces: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    steps = [step for trace in traces for step in trace["steps"]]
    feedback = [
        step["environment"]["action_feedback"]
        for step in steps
        if step["environment"] is not None and step["environment"]["action_feedback"] is not None
    ]
    protocol_errors = sum("protocol_error" in step for step in steps)
    policy_failures = sum("policy_failure" in step for step in steps)
    invalid = sum(record["valid"] is False for record in feedback)
    reasons = Counter(trace["final"]["termination_reason"] for trace in traces)
    return {
        "steps_mean": mean_or_none([len(trace["steps"]) for trace in traces]),
        "model_steps": len(steps),
        "protocol_errors": protocol_errors,
        "protocol_error_rate": rate(protocol_errors, len(steps)),
        "policy_failures": policy_failures,
        "policy_failure_rate": rate(policy_failures, len(steps)),
        "invalid_action_rate": rate(invalid, len(feedback)),
        "invalid_actions": invalid,
        "total_actions": len(feedback),
        "termination_reasons": dict(sorted(reasons.items())),
    }


def _cost(traces: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    tokens: Counter[str] = Counter()
    for trace in traces:
        for step in trace["steps"]:
            for kind, count in step["model"]["usage"].items():
                tokens[kind] += count
    return {
        "duration_ms_mean": mean_or_none([trace["duration_ms"] for trace in traces]),
        "tokens": {kind: tokens[kind] for kind in TOKEN_KINDS},
    }


def _sem(values: Sequence[float]) -> float | None:
    """Standard error of the mean with n-1; None below two values."""
    if len(values) < 2:
        return None
    centre = mean(values)
    variance = math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)
    return math.sqrt(variance / len(values))
