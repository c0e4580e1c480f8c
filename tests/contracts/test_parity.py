"""The same recorded groups through both engines: equal advantages, drops and metrics to 1e-12."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import SimpleNamespace

import pytest

from tests.contracts.shopping_scripts import tasks
from tests.contracts.test_filter import run_loop
from trainer.config import RolloutConfig
from trainer.engines.slime import hooks
from trainer.engines.slime.play import EpisodeRollout
from trainer.engines.slime.runtime import runtime
from trainer.engines.slime.samples import (
    Turn,
    finish_samples,
    leaves,
    placeholder,
    rows_of,
    sample_of_row,
)
from trainer.grpo.filter import FailureStreak
from trainer.grpo.metrics import PREFIX
from trainer.grpo.step import StepPlan, play_step
from trainer.rollout.policy import TokenRecord
from trainer.rollout.traces import token_summary
from trainer.rollout.types import EpisodeResult
from trainer.skills.curriculum import load_curriculum

TARGET, WAVE, SIZE = 4, 6, 4
#: rewards of each group's siblings; None could not be scored. The last group fills the target.
REWARDS = [
    [1.0, None, 0.25, 0.0],
    [1.0, 1.0, 1.0, 1.0],
    [1.0, 0.0, 0.3333333333333333, 1.0],
    [0.0, 0.5, 0.1, 0.7],
    [0.0, 0.0, 0.0, 1.0],
    [0.2, 0.0, 0.6, 0.0],
]
RETRIES = {3: 1.0, 5: 0.4}


def reward_of(group, place, retry):
    return RETRIES[group] if retry else REWARDS[group][place]


def record(request, group, place, retry):
    """A recorded episode: three turns, one of them a protocol error, or a technical failure."""
    value = reward_of(group, place, retry)
    steps = [
        {"environment": {"action_feedback": {"valid": True}}},
        {"environment": None, "protocol_error": {"code": "mixed_content"}},
        {"environment": {"action_feedback": {"valid": place % 2 == 0}}},
    ]
    error = {"type": "Boom", "stage": "model_step_2", "category": "engine"}
    ids = tuple(range(10 * (group + 1) + place))
    mask = tuple(int(i % 3 == 1) for i in ids)
    log_probs = tuple(-0.01 * i * m for i, m in zip(ids, mask, strict=True))
    tokens = TokenRecord(ids, mask, log_probs)
    scored = value is not None
    trace = {
        "episode_id": request.episode_id,
        "status": "completed" if scored else "failed",
        "steps": steps[: 3 if scored else 1],
        "final": {"termination_reason": "purchase"} if scored else None,
        "error": None if scored else error,
        "tokens": token_summary(tokens, exact=False),
    }
    reward = {"reward": value, "r_strict": value, "r_success": float(value == 1.0)}
    return EpisodeResult(request, trace, reward if scored else {}, scored, tokens)


def local_step(curriculum):
    """The embedded engine's step over the recorded groups."""

    def play(requests):
        results = []
        for request in requests:
            group = request.extra["training"]["group_index"]
            retry = request.extra["training"]["purpose"] == "retry"
            place = request.job.sample_id - group * SIZE
            results.append(record(request, group, place, retry))
        return results

    return play_step(
        StepPlan(
            step=1,
            first_group=0,
            weight_version=0,
            seed=42,
            curriculum=curriculum,
            tasks=SimpleNamespace(task=lambda group: tasks()[group]),
            settings=RolloutConfig(
                groups_per_wave=WAVE, groups_kept=TARGET, episodes_per_group=SIZE
            ),
            std_normalisation=True,
            streak=FailureStreak(8),
            play=play,
        )
    )


def recorded_play(monkeypatch):
    """Let slime's hooks meet the recorded episodes instead of playing."""

    async def play_episode(stage, request, base, *, session_id, live):
        group = int(base.group_index)
        retry = session_id.endswith("retry")
        await asyncio.sleep(0 if retry else 0.02 * (group + 1))
        result = record(request, group, base.index - group * SIZE, retry)
        if not result.scored:
            row = placeholder(base, reason="Boom", category="engine", metadata={})
            return EpisodeRollout(result, [row])
        turns = [Turn((1, 2), (3, 4), (-0.1, -0.2), "stop"), Turn((9,), (5,), (-0.3,), "stop")]
        rows = rows_of(turns, contiguous=False, max_tokens=0)
        samples = [sample_of_row(row, base, "") for row in rows]
        metadata = {"shopsim_assignment": request.skills["assignment"]}
        finish_samples(samples, base, reward=result.reward, truncated=False, metadata=metadata)
        return EpisodeRollout(result, samples)

    monkeypatch.setattr(hooks, "play_episode", play_episode)


def slime_step(slime, monkeypatch):
    """The same through slime: trainer's rows, metrics, drops, waves."""
    recorded_play(monkeypatch)
    args = slime.args(
        rollout_batch_size=TARGET, over_sampling_batch_size=WAVE, n_samples_per_prompt=SIZE
    )
    if slime.kind == "checkout":
        waves, output = run_loop(slime, monkeypatch, args)
        rows, drops = leaves(output.samples), output.metrics
    else:
        waves, rows, drops = small_loop(slime, args)
    raw, advantages = hooks.normalise_rewards(args, rows)
    metrics = dict(drops)
    hooks.log_rollout(1, args, rows, metrics, 1.0)
    runtime().publisher.wait()
    return waves, rows, raw, advantages, metrics


def small_loop(slime, args):
    """slime's rule in a few lines: offer each group in order, drop what the filter lets go."""
    state, kept, groups, drops = slime.state, [], [], Counter()
    state.remaining_batch_size = WAVE
    for index in range(WAVE):
        group = slime.generate(slime.group(index, size=SIZE), args)
        groups.append(group)
        verdict = hooks.filter_group(args, group)
        short = verdict.keep_when_insufficient and state.remaining_batch_size <= TARGET
        if verdict.keep or short:
            kept.append(group)
        else:
            state.remaining_batch_size -= 1
            drops[f"rollout/dynamic_filter/drop_{verdict.reason}"] += 1
    hooks.record_groups(args, groups, None)
    return 1, leaves(kept), dict(drops)


def test_both_engines_make_the_same_of_the_same_groups(slime, monkeypatch):
    curriculum = load_curriculum(slime.folder / "curriculum.json")
    local = local_step(curriculum)
    waves, rows, raw, advantages, metrics = slime_step(slime, monkeypatch)

    kept = [group.group_index for group in local.kept]
    assert kept == [2, 3, 4, 5]
    assert sorted({row.group_index for row in rows}) == kept
    assert waves == 1

    expected = {
        (index, sample): advantage
        for index in kept
        for sample, advantage in zip(
            range(index * SIZE, (index + 1) * SIZE), local.advantages[index], strict=True
        )
    }
    assert len(rows) == 2 * len(expected)
    for row, advantage, reward in zip(rows, advantages, raw, strict=True):
        assert advantage == pytest.approx(expected[(row.group_index, row.rollout_id)], abs=1e-12)
        assert reward == reward_of(row.group_index, row.rollout_id % SIZE, False)

    for name, value in local.metrics.items():
        assert metrics[name] == pytest.approx(value, abs=1e-12), name
    only_slime = {name.removeprefix(PREFIX) for name in metrics if name.startswith(PREFIX)} - {
        name.removeprefix(PREFIX) for name in local.metrics
    }
    assert only_slime == {
        "aborted_group_count",
        "aborted_trajectory_count",
        "samples_per_trajectory_mean",
        "trainer_token_count",
        "trained_token_count",
        "trainer_tokens_per_trajectory_mean",
        "semaphore_wait_seconds_mean",
        "episode_seconds_mean",
        "retry_seconds_total",
    }


def test_the_published_example_of_the_advantages(slime):
    """training.md, A5: a winner of one segment, a loser of two, and a tied group."""
    rows = []
    for group, rollout, reward in (
        (0, 10, 0.0),
        (0, 10, 0.0),
        (0, 11, 1.0),
        (1, 20, 0.25),
        (1, 21, 0.25),
    ):
        row = slime.Sample(group_index=group, index=rollout)
        row.rollout_id = rollout
        row.reward = {"reward": reward}
        rows.append(row)
    args = slime.args()
    raw, advantages = hooks.normalise_rewards(args, rows)
    assert raw == [0.0, 0.0, 1.0, 0.25, 0.25]
    assert advantages == pytest.approx([-0.70711, -0.70711, 0.70711, 0, 0], abs=1e-5)
    assert hooks.normalise_rewards(slime.args(rewards_normalization=False), rows) == (raw, raw)
    _, centred = hooks.normalise_rewards(slime.args(grpo_std_normalization=False), rows)
    assert centred == [-0.5, -0.5, 0.5, 0.0, 0.0]
    rows[1].reward = {"reward": 0.5}
    with pytest.raises(ValueError, match="rollout 10"):
        hooks.normalise_rewards(args, rows)
