"""One training step up to the update: waves of groups, retries, triage, filter, advantages.

Nothing here touches weights or files. The result says everything about the step, and is the same
for the same weights, curriculum and group numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from trainer.config import RolloutConfig
from trainer.grpo.engine import TrainingEpisode
from trainer.grpo.filter import FailureStreak, WaveFilter
from trainer.grpo.groups import Group, sample_indices
from trainer.grpo.metrics import FinishedGroup, step_metrics
from trainer.grpo.normalise import RewardRow, normalise
from trainer.grpo.tasks import TaskOrder
from trainer.grpo.triage import classify, needs_retry
from trainer.rollout.types import EpisodeJob, EpisodeRequest, EpisodeResult
from trainer.skills.curriculum import Curriculum
from trainer.skills.masks import Treatment, full_skill, treatment, visible_chunks

Play = Callable[[Sequence[EpisodeRequest]], list[EpisodeResult]]


@dataclass(frozen=True, slots=True)
class StepPlan:
    """What a step needs to know before it starts.

    ``play`` runs episodes on the current weights, which ``weight_version`` updates have made.
    """

    step: int
    first_group: int
    weight_version: int
    seed: int
    curriculum: Curriculum
    tasks: TaskOrder
    settings: RolloutConfig
    std_normalisation: bool
    streak: FailureStreak
    play: Play


@dataclass(slots=True)
class StepResult:
    """What a step brought, groups in order; ``advantages`` holds those of the kept groups."""

    groups: list[FinishedGroup] = field(default_factory=list)
    results: dict[int, list[EpisodeResult]] = field(default_factory=dict)
    retries: list[EpisodeResult] = field(default_factory=list)
    advantages: dict[int, list[float]] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def kept(self) -> list[Group]:
        """The groups that train the policy, in order."""
        return [item.group for item in self.groups if item.decision.kept]

    def training_episodes(self, groups: Sequence[Group]) -> list[TrainingEpisode]:
        """Tokens and advantages of some kept groups' episodes, in sample order."""
        episodes = []
        for group in groups:
            pairs = zip(
                self.results[group.group_index], self.advantages[group.group_index], strict=True
            )
            for result, advantage in pairs:
                if result.tokens is None:
                    raise ValueError(f"{result.request.episode_id}: the engine kept no tokens")
                episodes.append(TrainingEpisode(result.tokens, advantage))
        return episodes


def play_step(plan: StepPlan) -> StepResult:
    """Play waves until the filter is content. Raises TooManyFailedGroups and StopRequested."""
    result = StepResult(seconds={"rollout": 0.0, "retry": 0.0})
    waves = WaveFilter(
        target=plan.settings.groups_kept,
        wave=plan.settings.groups_per_wave,
        streak=plan.streak,
    )
    next_group = plan.first_group
    while waves.open_wave():
        numbers = range(next_group, next_group + plan.settings.groups_per_wave)
        next_group = numbers.stop
        groups = _play_wave(plan, numbers, result)
        retries = _play_retries(plan, groups, result)
        for group in groups:
            retry = retries.get(group.group_index)
            label = classify(group, retry, retry_enabled=plan.settings.full_skill_retry)
            result.groups.append(FinishedGroup(group, retry, label, waves.offer(group)))
    _add_advantages(plan, result)
    result.metrics = step_metrics(
        result.groups, plan.curriculum, drops=waves.drops, waves=waves.waves
    )
    return result


def _play_wave(plan: StepPlan, numbers: range, result: StepResult) -> list[Group]:
    started = time.monotonic()
    size = plan.settings.episodes_per_group
    treatments = {number: treatment(plan.curriculum, number) for number in numbers}
    requests = [
        _request(plan, number, sample, treatments[number])
        for number in numbers
        for sample in sample_indices(number, size)
    ]
    played = plan.play(requests)
    groups = []
    for place, number in enumerate(numbers):
        siblings = played[place * size : (place + 1) * size]
        result.results[number] = siblings
        groups.append(
            Group(
                group_index=number,
                task_id=plan.tasks.task(number),
                treatment=treatments[number],
                sample_indices=sample_indices(number, size),
                outcomes=tuple(siblings),
            )
        )
    result.seconds["rollout"] += time.monotonic() - started
    return groups


def _play_retries(
    plan: StepPlan, groups: Sequence[Group], result: StepResult
) -> Mapping[int, EpisodeResult]:
    """The full-skill retries of a wave: outside of the trainer and of every advantage."""
    started = time.monotonic()
    failed = [
        group
        for group in groups
        if needs_retry(group, retry_enabled=plan.settings.full_skill_retry)
    ]
    everything = full_skill(plan.curriculum)
    requests = [
        _request(plan, group.group_index, group.sample_indices[-1] + 1, everything, retry=True)
        for group in failed
    ]
    played = plan.play(requests)
    result.retries += played
    result.seconds["retry"] += time.monotonic() - started
    return {group.group_index: retry for group, retry in zip(failed, played, strict=True)}


def _request(
    plan: StepPlan, group_index: int, sample: int, given: Treatment, *, retry: bool = False
) -> EpisodeRequest:
    purpose = "retry" if retry else "train"
    return EpisodeRequest(
        job=EpisodeJob(plan.tasks.task(group_index), sample, plan.seed, "train"),
        episode_id=episode_id(group_index, sample, retry=retry),
        noise_key=f"{purpose}:{plan.seed}:{group_index}:{sample}",
        chunks=visible_chunks(plan.curriculum, given),
        skills={
            "curriculum_state_id": plan.curriculum.state_id,
            "assignment": given.to_record(plan.curriculum, group_index),
            "diagnostic_full_skill": retry,
        },
        extra={
            "training": {
                "purpose": purpose,
                "rollout_step": plan.step,
                "group_index": group_index,
                "weight_version": plan.weight_version,
            }
        },
    )


def episode_id(group_index: int, sample_index: int, *, retry: bool) -> str:
    """The published id. A retry's number is one past its siblings'; its suffix keeps it apart."""
    suffix = "-full-skill-retry" if retry else ""
    return f"train-group-{group_index:09d}-sample-{sample_index:09d}{suffix}"


def _add_advantages(plan: StepPlan, result: StepResult) -> None:
    rows = [
        RewardRow(group.group_index, sample, reward)
        for group in result.kept
        for sample, reward in zip(group.sample_indices, group.rewards, strict=True)
    ]
    values = normalise(rows, std_normalisation=plan.std_normalisation)
    for row, value in zip(rows, values, strict=True):
        result.advantages.setdefault(row.group_index, []).append(value)
