"""The functions slime calls by path: generate, filter, normalise, record, log.

They hold no rule of the method themselves: masks come from ``trainer.skills``, episodes from
``trainer.rollout``, filter, advantages, triage and metrics from ``trainer.grpo``. Importing this
module imports neither slime nor ray, torch or sglang. Specification: training.md §4, §5.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping, Sequence
from typing import Any

from trainer.engines.slime.groups import FinishedRollouts, OpenGroup, finish_group
from trainer.engines.slime.play import EpisodeRollout, Stage, play_episode
from trainer.engines.slime.population import group_of
from trainer.engines.slime.publication import (
    group_folder,
    round_folder,
    write_trace,
    write_triage,
)
from trainer.engines.slime.requests import (
    episode_request,
    refuse,
    session_id,
    slime_step,
    task_of,
)
from trainer.engines.slime.runtime import runtime
from trainer.engines.slime.samples import leaves, rollout_key
from trainer.engines.slime.settings import hook_settings
from trainer.engines.slime.step_end import end_step
from trainer.grpo.filter import UNSCORED, ZERO_STD, Decision, is_tied
from trainer.grpo.normalise import RewardRow, normalise
from trainer.skills.masks import full_skill


async def generate(
    args: Any, sample: Any, sampling_params: Mapping[str, Any], evaluation: bool = False
) -> list[Any]:
    """Play the episode of one Sample and return its training rows.

    The sibling that completes its group also plays the group's retry and labels it before it
    returns; no sibling waits for another. Raises ValueError for a request this runtime must not
    serve, RuntimeError when siblings were not treated alike.
    """
    settings = hook_settings(args)
    refuse(args, sample, sampling_params, evaluation=evaluation)
    state = runtime()
    entry = state.groups.join(
        settings.resolve(settings.curriculum_path),
        int(sample.group_index),
        task_id=task_of(sample),
        size=int(args.n_samples_per_prompt),
    )
    stage = state.stage(args, settings, sampling_params)
    rollout = await _play(args, stage, entry, sample, retry=False)
    if entry.report(int(sample.index), rollout):
        await _lead(args, stage, entry, sample, rollout)
    return rollout.samples


async def _play(
    args: Any, stage: Stage, entry: OpenGroup, sample: Any, *, retry: bool
) -> EpisodeRollout:
    """One episode with its trace on disk and its outcome on its rows."""
    given = full_skill(entry.curriculum) if retry else entry.treatment
    step = slime_step()
    if step is None:
        step = runtime().step
    request = episode_request(args, entry, sample, given, retry=retry, step=step)
    session = session_id(entry, sample, retry=retry)
    live = runtime().live(round_folder(stage.settings, entry.curriculum.round_id), step or 0)
    rollout = await play_episode(stage, request, sample, session_id=session, live=live)
    if not retry:
        folder = group_folder(stage.settings, entry.curriculum.round_id, entry.group_index)
        path = folder / f"rollout-{sample.index}.json"
        await asyncio.to_thread(write_trace, path, rollout.result.trace)
        for row in rollout.samples:
            row.metadata |= {
                "shopsim_trace_path": str(path),
                "shopsim_reward": dict(row.reward),
                "shopsim_scored": rollout.result.scored,
            }
    return rollout


async def _lead(
    args: Any, stage: Stage, entry: OpenGroup, sample: Any, rollout: EpisodeRollout
) -> None:
    """Finish a complete group: retry, label, triage record."""

    async def play_retry() -> EpisodeRollout:
        base = copy.copy(sample)
        base.index = max(entry.rollouts) + 1
        base.metadata = dict(sample.metadata)
        return await _play(args, stage, entry, base, retry=True)

    finished = await finish_group(
        entry,
        play_retry,
        retry_enabled=stage.settings.full_skill_retry,
        stopping=stage.aborted,
    )
    runtime().groups.close(finished)
    folder = group_folder(stage.settings, entry.curriculum.round_id, entry.group_index)
    await asyncio.to_thread(write_triage, folder, finished)
    for row in rollout.samples:
        row.metadata["shopsim_group_triage"] = triage_summary(finished)


def triage_summary(finished: FinishedRollouts) -> dict[str, Any]:
    """What the leader's rows say of their group."""
    retry = None if finished.retry is None else finished.retry.result
    return {
        "all_wrong": finished.group.all_wrong,
        "classification": finished.label,
        "full_skill_retry": retry is not None,
        "full_skill_retry_scored": None if retry is None else retry.scored,
        "full_skill_retry_success": None if retry is None else retry.success,
    }


def filter_group(args: Any, samples: Sequence[Any], **kwargs: Any) -> Any:
    """Keep, drop, or keep only when too few groups are left.

    Raises TooManyFailedGroups when too many groups in a row could not be scored. A slime that has
    no ``keep_when_insufficient`` is told the outcome of the same rule.
    """
    group = group_of(samples)
    state = runtime()
    state.watch(hook_settings(args)).note(group)
    if not group.all_scored:
        return _decide(args, group.group_index, keep=False, reason=UNSCORED, salvage=False)
    if is_tied(group):
        return _decide(args, group.group_index, keep=False, reason=ZERO_STD, salvage=True)
    return _decide(args, group.group_index, keep=True, reason=None, salvage=False)


def _decide(args: Any, group_index: int, *, keep: bool, reason: str | None, salvage: bool) -> Any:
    from slime.rollout.filter_hub.base_types import DynamicFilterOutput

    short = salvage and groups_are_short(args)
    finished = runtime().groups.finished.get(group_index)
    if finished is not None and not keep and not short:
        finished.decision = Decision("dropped", reason)
    if "keep_when_insufficient" in getattr(DynamicFilterOutput, "__dataclass_fields__", {}):
        return DynamicFilterOutput(keep=keep, reason=reason, keep_when_insufficient=salvage)
    return DynamicFilterOutput(keep=keep or short, reason=None if keep or short else reason)


def groups_are_short(args: Any) -> bool:
    """Whether no more groups are outstanding or kept than the step needs."""
    from slime.rollout.sglang_rollout import GenerateState

    return bool(GenerateState(args).remaining_batch_size <= args.rollout_batch_size)


def normalise_rewards(args: Any, samples: Sequence[Any]) -> tuple[list[float], list[float]]:
    """Raw rewards and advantages of the trainer's rows, in their order (training.md §4.10)."""
    raw = [float(sample.get_reward_value(args)) for sample in samples]
    if not getattr(args, "rewards_normalization", True):
        return raw, list(raw)
    rows = [
        RewardRow(int(sample.group_index or 0), rollout_key(sample), reward)
        for sample, reward in zip(samples, raw, strict=True)
    ]
    scaled = bool(getattr(args, "grpo_std_normalization", True))
    return raw, normalise(rows, std_normalisation=scaled)


def record_groups(args: Any, all_groups: Sequence[Any], data_source: Any) -> None:
    """Note which groups reached the filter in this step; slime has waited for all the others."""
    indices = {leaf.group_index for leaf in leaves(all_groups)}
    runtime().note_seen({int(index) for index in indices if index is not None})


def log_rollout(
    rollout_id: int,
    args: Any,
    samples: Sequence[Any],
    rollout_extra_metrics: dict[str, Any] | None,
    rollout_time: float,
) -> bool:
    """Add the step's metrics to slime's and write its files. False: slime logs on as usual."""
    if rollout_extra_metrics is None:
        return False
    metrics = end_step(
        runtime(),
        args,
        hook_settings(args),
        rollout_id=rollout_id,
        samples=samples,
        extra=rollout_extra_metrics,
        seconds=rollout_time,
    )
    rollout_extra_metrics.update(metrics)
    return False
