"""The metrics of one step, ``rollout/shopsim/*``, exactly as published, and what was missing there.

Population *generated* is every group that finished and reached the filter; *train* is what the
update was given. A rate without a denominator is absent, not zero; denominators are logged beside
the rates. Specification: training.md §5.2, additions §9.5, §9.18, §9.20-22.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.grpo.filter import UNSCORED, ZERO_STD, Decision
from trainer.grpo.groups import Group, Outcome
from trainer.grpo.triage import Classification
from trainer.means import mean_or_none, rate
from trainer.skills.curriculum import Curriculum

PREFIX = "rollout/shopsim/"


@dataclass(frozen=True, slots=True)
class FinishedGroup:
    """A group with its retry, its triage label and the filter's decision."""

    group: Group
    retry: Outcome | None
    classification: Classification
    decision: Decision


def step_metrics(
    groups: Sequence[FinishedGroup],
    curriculum: Curriculum,
    *,
    drops: Mapping[str, int],
    waves: int,
) -> dict[str, float]:
    """All metrics of one step by full name; ``drops`` counts real drops by reason."""
    named = {
        **_counts(groups),
        **_rewards(groups),
        **_treatments(groups, curriculum),
        **_triage(groups),
        **_drops(groups, drops),
        **_additions(groups, waves),
    }
    return {
        PREFIX + name: float(value)
        for name, value in named.items()
        if value is not None and math.isfinite(value)
    }


Values = dict[str, float | None]


def _counts(groups: Sequence[FinishedGroup]) -> Values:
    trained = [item.group for item in groups if item.decision.kept]
    return {
        "trajectory_count": sum(len(item.group.outcomes) for item in groups),
        "group_count": len(groups),
        "train_trajectory_count": sum(len(group.outcomes) for group in trained),
        "train_group_count": len(trained),
    }


def _rewards(groups: Sequence[FinishedGroup]) -> Values:
    outcomes = list(_outcomes(groups))
    scored = [outcome.reward for outcome in outcomes if outcome.scored]
    return {
        "scored_rate": rate(len(scored), len(outcomes)),
        "reward_mean": mean_or_none(reward["reward"] for reward in scored),
        "strict_reward_mean": mean_or_none(reward["r_strict"] for reward in scored),
        "success_rate": mean_or_none(reward["r_success"] for reward in scored),
    }


def _treatments(groups: Sequence[FinishedGroup], curriculum: Curriculum) -> Values:
    treatments = [item.group.treatment for item in groups]
    modes = Counter(given.mode for given in treatments)
    shown = [given.skill_ids for given in treatments if given.mode != "skill_free"]
    rho = curriculum.rho
    values: Values = {
        "skill_free_group_rate": rate(modes["skill_free"], len(groups)),
        "assisted_empty_group_rate": rate(modes["assisted_empty"], len(groups)),
        "skills_per_assisted_group_mean": mean_or_none(len(ids) for ids in shown),
        "q": curriculum.skill_free_probability,
        "rho_min": min(rho.values(), default=None),
        "rho_mean": mean_or_none(rho.values()),
        "rho_max": max(rho.values(), default=None),
    }
    for skill_id, target in rho.items():
        seen = sum(skill_id in ids for ids in shown)
        values[f"chunk/{skill_id}/inclusion_rate"] = rate(seen, len(shown))
        values[f"chunk/{skill_id}/target_rho"] = target
    return values


def _triage(groups: Sequence[FinishedGroup]) -> Values:
    labels = [item.classification for item in groups]
    count = Counter(labels)
    retries = [item.retry for item in groups if item.retry is not None]
    scored = [retry for retry in retries if retry.scored]
    whole = [item.group for item in groups if item.group.all_scored]
    return {
        "all_wrong_group_rate": rate(sum(group.all_wrong for group in whole), len(whole)),
        "full_skill_retry_rate": rate(len(retries), len(labels)),
        "full_skill_retry_success_rate": rate(sum(r.success for r in scored), len(scored)),
        "internalization_deficit_rate": rate(count["model_internalization_deficit"], len(labels)),
        "pending_analysis_rate": rate(count["full_skill_failure_pending_analysis"], len(labels)),
        "runtime_error_group_rate": rate(count["environment_or_runtime_error"], len(labels)),
    }


def _drops(groups: Sequence[FinishedGroup], drops: Mapping[str, int]) -> Values:
    trained = sum(item.decision.kept for item in groups)
    values: Values = {}
    for name, reason in (("technical", UNSCORED), ("zero_std", ZERO_STD)):
        dropped = drops.get(reason, 0)
        if dropped:
            values[f"{name}_group_drop_count"] = dropped
            values[f"{name}_group_drop_rate"] = dropped / (trained + dropped)
    return values


def _additions(groups: Sequence[FinishedGroup], waves: int) -> Values:
    """What the published metrics do not show, the denominators of their rates among it."""
    outcomes = list(_outcomes(groups))
    retries = [item.retry for item in groups if item.retry is not None]
    verdicts = Counter(item.decision.verdict for item in groups)
    whole = [item.group for item in groups if item.group.all_scored]
    values: Values = {
        "wave_count": waves,
        "tied_group_kept_count": verdicts["kept_tied"],
        "surplus_group_count": verdicts["surplus"],
        "scored_trajectory_count": sum(outcome.scored for outcome in outcomes),
        "scored_group_count": len(whole),
        "triaged_group_count": len(groups),
        "full_skill_retry_count": len(retries),
        "assisted_group_count": sum(item.group.treatment.mode != "skill_free" for item in groups),
        "mixed_success_group_rate": rate(sum(g.mixed_success() for g in whole), len(whole)),
        "all_wrong_varied_group_rate": rate(
            sum(g.all_wrong and max(g.rewards) > min(g.rewards) for g in whole), len(whole)
        ),
        **_success_by_mode(groups),
        **_behaviour(outcomes),
        **_tokens(outcomes),
        "retry_token_count": sum(_sampled(retry) for retry in retries),
    }
    return values


def _success_by_mode(groups: Sequence[FinishedGroup]) -> Values:
    values: Values = {}
    for mode in ("skill_free", "assisted", "assisted_empty"):
        scored = [
            outcome
            for item in groups
            if item.group.treatment.mode == mode
            for outcome in item.group.outcomes
            if outcome.scored
        ]
        values[f"success_rate/{mode}"] = rate(sum(o.success for o in scored), len(scored))
        values[f"scored_trajectory_count/{mode}"] = len(scored)
    return values


def _behaviour(outcomes: Sequence[Outcome]) -> Values:
    steps = [step for outcome in outcomes for step in outcome.trace["steps"]]
    errors = Counter(step["protocol_error"]["code"] for step in steps if "protocol_error" in step)
    failures = Counter(step["policy_failure"]["code"] for step in steps if "policy_failure" in step)
    ends = Counter(
        outcome.trace["final"]["termination_reason"]
        for outcome in outcomes
        if outcome.trace["final"]
    )
    technical = Counter(
        outcome.trace["error"]["category"] for outcome in outcomes if outcome.trace["error"]
    )
    feedback = [step["environment"]["action_feedback"] for step in steps if step["environment"]]
    invalid = sum(record is not None and record["valid"] is False for record in feedback)
    values: Values = {
        "turn_count": len(steps),
        "turns_per_trajectory_mean": rate(len(steps), len(outcomes)),
        "protocol_error_rate": rate(sum(errors.values()), len(steps)),
        "policy_failure_rate": rate(sum(failures.values()), len(steps)),
        "invalid_action_rate": rate(invalid, len(feedback)),
        "truncated_rate": rate(ends["generation_length"], len(outcomes)),
    }
    for name, counter in (
        ("protocol_error", errors),
        ("policy_failure", failures),
        ("termination", ends),
        ("technical_failure", technical),
    ):
        values |= {f"{name}/{code}_count": count for code, count in sorted(counter.items())}
    return values


def _tokens(outcomes: Sequence[Outcome]) -> Values:
    counted = [outcome.trace["tokens"] for outcome in outcomes if "tokens" in outcome.trace]
    sampled = sum(tokens["sampled"] for tokens in counted)
    total = sum(tokens["total"] for tokens in counted)
    log_probs = math.fsum(
        tokens["log_prob_mean"] * tokens["sampled"] for tokens in counted if tokens["sampled"]
    )
    return {
        "sampled_token_count": sampled,
        "read_token_count": total - sampled,
        "sampled_tokens_per_trajectory_mean": rate(sampled, len(counted)),
        "read_tokens_per_trajectory_mean": rate(total - sampled, len(counted)),
        "log_prob_mean": log_probs / sampled if sampled else None,
    }


def _sampled(outcome: Outcome) -> int:
    tokens: Mapping[str, Any] = outcome.trace.get("tokens") or {}
    return int(tokens.get("sampled", 0))


def _outcomes(groups: Sequence[FinishedGroup]) -> Iterator[Outcome]:
    for item in groups:
        yield from item.group.outcomes
