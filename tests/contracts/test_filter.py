"""The filter as slime calls it, alone and inside slime's real rollout loop."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from tests.contracts import canned
from trainer.engines.slime.hooks import filter_group
from trainer.grpo.filter import TooManyFailedGroups

TECHNICAL = "shopsim_unscored_technical_group"
TIED = "shopsim_zero_std_group"


def group_of(slime, rewards, *, group_index=0, segments=1, category="engine"):
    """A finished group; ``rewards`` holds None for an episode that could not be scored."""
    group = []
    for place, reward in enumerate(rewards):
        rows = []
        for _ in range(segments):
            row = slime.Sample(group_index=group_index, index=place)
            row.rollout_id = place
            value = 0.0 if reward is None else reward
            row.reward = {"reward": value, "r_strict": value, "r_success": float(value == 1.0)}
            row.metadata = {"shopsim_scored": reward is not None}
            if reward is None:
                row.metadata |= {"shopsim_abort_reason": "Boom", "shopsim_failure": category}
            rows.append(row)
        group.append(rows)
    return group


def verdict(slime, group, remaining=2, **changes):
    args = slime.args(**changes)
    slime.state.remaining_batch_size = remaining
    output = filter_group(args, group)
    return output.keep, output.reason, getattr(output, "keep_when_insufficient", None)


def test_a_group_with_different_rewards_is_kept(slime):
    keep, reason, _ = verdict(slime, group_of(slime, [0.0, 1.0]))
    assert (keep, reason) == (True, None)


def test_a_group_with_an_unscored_episode_is_dropped_and_never_salvaged(slime):
    for remaining in (1, 2, 9):
        keep, reason, salvage = verdict(slime, group_of(slime, [1.0, None]), remaining)
        assert (keep, reason) == (False, TECHNICAL)
        assert salvage in (False, None)


def test_a_tied_group_is_dropped_while_others_remain_and_kept_when_none_do(slime):
    group = group_of(slime, [1.0, 1.0])
    keep, reason, salvage = verdict(slime, group, remaining=3)
    assert (keep, reason) == (False, TIED)
    keep, reason, salvage_short = verdict(slime, group, remaining=2)
    # A slime without the fallback is told the outcome, any other one the rule.
    assert (salvage, salvage_short) in ((True, True), (None, None))
    assert keep is (salvage is None)


def test_the_spread_counts_episodes_not_segments(slime):
    one_episode = group_of(slime, [1.0], segments=3)
    assert verdict(slime, one_episode, remaining=9)[:2] == (False, TIED)
    close = group_of(slime, [1.0, 1.0 - 1e-7])
    assert verdict(slime, close, remaining=9)[:2] == (False, TIED)
    apart = group_of(slime, [1.0, 1.0 - 2e-6])
    assert verdict(slime, apart, remaining=9)[:2] == (True, None)


def test_an_empty_group_is_a_technical_loss(slime):
    assert verdict(slime, [])[:2] == (False, TECHNICAL)


def test_too_many_losses_in_a_row_end_the_run_and_name_their_causes(slime):
    lost = group_of(slime, [None, 1.0])
    for _ in range(2):
        verdict(slime, lost, shopsim_max_consecutive_failed_groups=3)
    verdict(slime, group_of(slime, [1.0, 1.0]), shopsim_max_consecutive_failed_groups=3)
    for _ in range(2):
        verdict(slime, lost, shopsim_max_consecutive_failed_groups=3)
    with pytest.raises(TooManyFailedGroups, match=r"3 groups in a row .* Boom"):
        verdict(slime, lost, shopsim_max_consecutive_failed_groups=3)


def test_a_share_of_losses_ends_the_run_too_when_a_limit_is_set(slime):
    limits = {"shopsim_failure_window": 4, "shopsim_max_failed_share": 0.5}
    lost, fine = group_of(slime, [None, 1.0]), group_of(slime, [0.0, 1.0])
    for group in (lost, fine, lost):
        verdict(slime, group, **limits)
    with pytest.raises(TooManyFailedGroups, match="75% of the last 4 groups"):
        verdict(slime, lost, **limits)


@pytest.mark.parametrize("category", ["aborted", "context_overflow"])
def test_losses_that_say_nothing_of_shop_or_engine_are_not_counted(slime, category):
    lost = group_of(slime, [None, None], category=category)
    for _ in range(20):
        assert verdict(slime, lost)[:2] == (False, TECHNICAL)


SCENARIOS = {
    # training.md §4.8: waves, kept, tied kept, technical drops, zero-std drops
    "all mixed": (lambda group, place: float(place == 0), (1, 16, 0, 0, 0)),
    "all tied": (lambda group, place: 1.0, (1, 16, 16, 0, 16)),
    "20 failures first": (
        lambda group, place: None if group < 20 else float(place == 0),
        (2, 16, 0, 20, 0),
    ),
    "14 mixed": (
        lambda group, place: float(place == 0) if group < 14 else 0.0,
        (1, 16, 2, 0, 16),
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_slimes_own_loop_gives_the_published_waves(checkout, monkeypatch, name):
    plan, expected = SCENARIOS[name]
    monkeypatch.setattr(canned, "plan", plan)
    args = checkout.args(
        rollout_batch_size=16,
        over_sampling_batch_size=32,
        n_samples_per_prompt=8,
        custom_generate_function_path="tests.contracts.canned.generate",
        shopsim_max_consecutive_failed_groups=50,
    )
    waves, output = run_loop(checkout, monkeypatch, args)
    drops = Counter(
        {
            key.rpartition("drop_")[2]: value
            for key, value in output.metrics.items()
            if "dynamic_filter/drop_" in key
        }
    )
    tied = [group for group in output.samples if len({rewards(rows) for rows in group}) == 1]
    found = (waves, len(output.samples), len(tied), drops[TECHNICAL], drops[TIED])
    assert found == expected


def rewards(rows):
    return rows[0].reward["reward"]


def run_loop(slime, monkeypatch, args):
    """Run slime's ``generate_rollout_async``; returns the number of waves and its output."""
    loop = slime.module("slime.rollout.sglang_rollout")

    async def workers(url):
        return {"workers": [], "urls": []}

    async def idle(urls):
        return None

    monkeypatch.setattr(loop, "get", workers)
    if hasattr(loop, "abort_servers_until_idle"):
        monkeypatch.setattr(loop, "abort_servers_until_idle", idle)
    slime.module("slime.utils.misc").SingletonMeta._instances.clear()
    groups = iter(range(10_000))
    waves = 0

    def source(count):
        nonlocal waves
        waves += 1
        return [slime.group(next(groups), size=args.n_samples_per_prompt) for _ in range(count)]

    output, _aborted = asyncio.run(loop.generate_rollout_async(args, 0, source))
    return waves, output
