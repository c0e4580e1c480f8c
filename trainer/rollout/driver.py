"""Playing many episodes at once, in this process: turn by turn in lockstep, or each at its own pace
where a server answers, so that no episode waits for the longest answer of a batch.

Batches are cut from the requests in the given order, so that the same requests always meet the same
neighbours: a sum over a batch may differ in its last bit from a sum over another one, and whole
batches are therefore the unit of resuming.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from trainer.progress import check_stop
from trainer.rollout.conversation import ConversationBuilder, conversation_builder
from trainer.rollout.episode import Episode
from trainer.rollout.live import LiveFile
from trainer.rollout.policy import Message, Policy, ServedPolicy, TokenRecord
from trainer.rollout.prompts import ACTION_PROTOCOL, WORD_ACTION_PROTOCOL
from trainer.rollout.types import EpisodeRequest, EpisodeResult
from trainer.shop.world import World

BATCH_SIZE = 256


def run_episodes(
    world: World,
    policy: Policy,
    requests: Sequence[EpisodeRequest],
    *,
    batch_size: int = BATCH_SIZE,
    max_turns: int | None = None,
    exact_tokens: bool = False,
    live: LiveFile | None = None,
) -> list[EpisodeResult]:
    """Play all requests and return their results in the same order.

    ``max_turns`` defaults to the profile's limit. ``live`` is told of every turn, for those who
    look on; who gave it closes it. Raises StopRequested between batches.
    """
    builder = conversation_builder(world)
    turns = world.profile.max_actions if max_turns is None else max_turns
    provenance = provenance_of(world, policy, builder, max_turns=turns)
    results: list[EpisodeResult] = []
    for start in range(0, len(requests), batch_size):
        check_stop()
        episodes = [
            Episode(
                world,
                builder,
                request,
                provenance=provenance,
                max_turns=turns,
                exact_tokens=exact_tokens,
            )
            for request in requests[start : start + batch_size]
        ]
        results += _play_batch(policy, episodes, live)
    return results


def _play_batch(
    policy: Policy, episodes: Sequence[Episode], live: LiveFile | None
) -> list[EpisodeResult]:
    if not isinstance(policy, ServedPolicy):
        return _play(policy, episodes, live)
    with ThreadPoolExecutor(policy.at_once, thread_name_prefix="episode") as pool:
        played = pool.map(partial(_play, policy, live=live), [[episode] for episode in episodes])
        return [result for results in played for result in results]


def _play(
    policy: Policy, episodes: Sequence[Episode], live: LiveFile | None
) -> list[EpisodeResult]:
    batch = policy.begin([episode.begin() for episode in episodes])
    if live is not None:
        live.note(episodes)
    tokens: dict[int, TokenRecord | None] = {}
    active = list(range(len(episodes)))
    while active:
        turns = batch.generate(active, [episodes[row].tools() for row in active])
        replies: dict[int, Sequence[Message]] = {}
        for row, turn in zip(active, turns, strict=True):
            messages = episodes[row].take(turn)
            if messages is None:
                tokens[row] = batch.tokens(row)  # before extend frees the row
            else:
                replies[row] = messages
        if live is not None:
            live.note(episodes[row] for row in active)
        batch.extend(replies)
        active = list(replies)
    return [episode.result(tokens[row]) for row, episode in enumerate(episodes)]


def provenance_of(
    world: World, policy: Policy, builder: ConversationBuilder, *, max_turns: int
) -> Mapping[str, Any]:
    """The trace sections that all episodes of a run share; the gate compares them between arms."""
    protocol = ACTION_PROTOCOL if world.language is None else WORD_ACTION_PROTOCOL
    return {
        "model": dict(policy.identity()),
        "environment": world.identity(),
        "prompt": builder.identity(),
        "runtime": {"max_steps": max_turns, "action_protocol": protocol},
    }
