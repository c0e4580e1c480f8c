"""The metrics of a finished slime step: the shared ones, and what only this engine can know.

Population and definitions are those of ``trainer.grpo.metrics``; groups that slime cut off are in
none of them and are counted here. Specification: training.md §5.1, §5.2, §9.20-9.22.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from trainer.engines.slime.groups import FinishedRollouts, OpenGroup
from trainer.engines.slime.population import group_of
from trainer.engines.slime.samples import leaves
from trainer.grpo.filter import UNSCORED, ZERO_STD, Decision, is_tied
from trainer.grpo.metrics import PREFIX, FinishedGroup
from trainer.grpo.normalise import RewardRow, normalise
from trainer.grpo.step import StepResult
from trainer.grpo.triage import Classification

DROP_PREFIX = "rollout/dynamic_filter/drop_"


def drops_of(extra_metrics: Mapping[str, Any]) -> dict[str, int]:
    """slime's own counts of really dropped groups, by reason."""
    return {
        reason: int(extra_metrics.get(DROP_PREFIX + reason, 0)) for reason in (UNSCORED, ZERO_STD)
    }


def trained_groups(samples: Sequence[Any]) -> set[int]:
    """Indices of the groups that were handed to the trainer."""
    return {int(sample.group_index) for sample in leaves(samples)}


def decide(finished: FinishedRollouts, trained: set[int]) -> Decision:
    """What became of a group: the filter's drop, else whether the trainer was given it."""
    if finished.decision is not None and finished.decision.verdict == "dropped":
        return finished.decision
    if finished.group.group_index not in trained:
        return Decision("surplus")
    tied = finished.group.all_scored and is_tied(finished.group)
    return Decision("kept_tied", ZERO_STD) if tied else Decision("kept")


def step_result(
    finished: Sequence[FinishedRollouts], trained: set[int], *, std_normalisation: bool
) -> StepResult:
    """The step as the shared publication writes it; groups in order."""
    result = StepResult()
    for item in sorted(finished, key=lambda item: item.group.group_index):
        retry = None if item.retry is None else item.retry.result
        decision = decide(item, trained)
        label = cast(Classification, item.label)
        result.groups.append(FinishedGroup(item.group, retry, label, decision))
        result.results[item.group.group_index] = [rollout.result for rollout in item.rollouts]
        if retry is not None:
            result.retries.append(retry)
    rows = [
        RewardRow(group.group_index, index, reward)
        for group in result.kept
        for index, reward in zip(group.sample_indices, group.rewards, strict=True)
    ]
    values = normalise(rows, std_normalisation=std_normalisation)
    for row, value in zip(rows, values, strict=True):
        result.advantages.setdefault(row.group_index, []).append(value)
    return result


def engine_metrics(
    finished: Sequence[FinishedRollouts],
    too_late: int,
    cut_off: Mapping[int, OpenGroup],
    samples: Sequence[Any],
) -> dict[str, float]:
    """What the shared metrics do not know: cut-off groups, rows, waiting, the retries' price.

    ``too_late`` counts groups that ended after the step was full; ``cut_off`` never ended.
    """
    rollouts = [rollout for item in finished for rollout in item.rollouts]
    retries = [item.retry for item in finished if item.retry is not None]
    rows = leaves(samples)
    episodes = {(row.group_index, getattr(row, "rollout_id", row.index)) for row in rows}
    read = sum(len(row.tokens) for row in rows)
    groups = trained_groups(rows)
    trained = sum(
        rollout.result.trace["tokens"]["sampled"]
        for item in finished
        if item.group.group_index in groups
        for rollout in item.rollouts
    )
    values: dict[str, float | None] = {
        "aborted_group_count": len(cut_off) + too_late,
        "aborted_trajectory_count": sum(len(group.rollouts) for group in cut_off.values()),
        "samples_per_trajectory_mean": len(rows) / len(episodes) if episodes else None,
        "trainer_token_count": read,
        "trained_token_count": trained,
        "trainer_tokens_per_trajectory_mean": read / len(episodes) if episodes else None,
        "semaphore_wait_seconds_mean": _mean([rollout.waited_seconds for rollout in rollouts]),
        "episode_seconds_mean": _mean([rollout.seconds for rollout in rollouts]),
        "retry_seconds_total": math.fsum(retry.seconds for retry in retries) if retries else None,
    }
    return {PREFIX + name: float(value) for name, value in values.items() if value is not None}


def fallback_groups(samples: Sequence[Any]) -> list[FinishedGroup]:
    """Groups read off the trainer's own rows, when the step was not recorded in this process.

    Labels come from the rows that carry them; the rest is what the rows say of themselves.
    """
    by_group: dict[int, list[Any]] = {}
    for row in leaves(samples):
        by_group.setdefault(int(row.group_index), []).append(row)
    groups = []
    for rows in by_group.values():
        group = group_of(rows)
        triage: Mapping[str, Any] = next(
            (row.metadata["shopsim_group_triage"] for row in rows if _has_triage(row)), {}
        )
        label = str(triage.get("classification", "not_frontier"))
        tied = group.all_scored and is_tied(group)
        decision = Decision("kept_tied", ZERO_STD) if tied else Decision("kept")
        groups.append(FinishedGroup(group, None, cast(Classification, label), decision))
    return groups


def _has_triage(row: Any) -> bool:
    return bool((row.metadata or {}).get("shopsim_group_triage"))


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
