"""The end of a slime step: which groups count, their metrics, their files.

Groups that slime cut off reach neither filter nor trainer; they are counted and forgotten, so that
nothing of them stays in memory. Specification: training.md §4.9, §5.1, §9.14, §9.20.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.engines.slime.groups import FinishedRollouts
from trainer.engines.slime.publication import round_folder
from trainer.engines.slime.rollout_metrics import (
    drops_of,
    engine_metrics,
    fallback_groups,
    step_result,
    trained_groups,
)
from trainer.engines.slime.runtime import Runtime
from trainer.engines.slime.settings import HookSettings
from trainer.grpo.metrics import step_metrics
from trainer.sinks.base import MetricPoint
from trainer.skills.curriculum import load_curriculum


def end_step(
    state: Runtime,
    args: Any,
    settings: HookSettings,
    *,
    rollout_id: int,
    samples: Sequence[Any],
    extra: Mapping[str, Any],
    seconds: float,
) -> dict[str, float]:
    """Close the step ``rollout_id`` and return its metrics by full name."""
    finished, cut_off, started = state.groups.clear()
    reached = _reached(finished, state.take_seen())
    drops = drops_of(extra)
    if not reached:
        # Nothing was recorded here, as when slime replays stored samples.
        curriculum = load_curriculum(settings.resolve(settings.curriculum_path))
        return step_metrics(fallback_groups(samples), curriculum, drops=drops, waves=0)
    wave = getattr(args, "over_sampling_batch_size", None) or args.rollout_batch_size
    result = step_result(
        reached,
        trained_groups(samples),
        std_normalisation=bool(getattr(args, "grpo_std_normalization", True)),
    )
    curriculum = reached[0].curriculum
    waves = -(-started // int(wave))
    result.metrics = {
        **step_metrics(result.groups, curriculum, drops=drops, waves=waves),
        **engine_metrics(reached, len(finished) - len(reached), cut_off, samples),
    }
    point = MetricPoint(rollout_id, result.metrics, {"rollout": round(seconds, 4)})
    state.publisher.publish(
        round_folder(settings, curriculum.round_id),
        rollout_id,
        result,
        point,
        of=settings.round_steps,
    )
    state.step = rollout_id + 1
    return result.metrics


def _reached(
    finished: Mapping[int, FinishedRollouts], seen: set[int] | None
) -> list[FinishedRollouts]:
    """The groups that reached the filter; if slime did not say, all that were not cut off."""
    if seen is None:
        return [item for item in finished.values() if not item.aborted]
    return [item for index, item in finished.items() if index in seen]
