"""A generate function that slime loads by path and that plays nothing: a plan says what came."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

#: ``plan(group_index, place) -> reward``, or None for an episode that could not be scored
plan: Callable[[int, int], float | None] = lambda group, place: None  # noqa: E731


async def generate(args: Any, sample: Any, sampling_params: Any) -> list[Any]:
    """The Sample with the outcome that the plan wants, marked as the hooks mark theirs."""
    await asyncio.sleep(0.0005 * (sample.group_index % 97))  # groups finish in a known order
    place = sample.index - sample.group_index * args.n_samples_per_prompt
    reward = plan(sample.group_index, place)
    sample.tokens, sample.response_length, sample.loss_mask = [1, 2], 1, [1]
    sample.rollout_log_probs = [-0.5]
    sample.response = "x"
    sample.rollout_id = sample.index
    value = 0.0 if reward is None else reward
    sample.reward = {"reward": value, "r_strict": value, "r_success": float(value == 1.0)}
    sample.metadata = {**sample.metadata, "shopsim_scored": reward is not None}
    status = type(sample).Status
    sample.status = status.ABORTED if reward is None else status.COMPLETED
    return [sample]
