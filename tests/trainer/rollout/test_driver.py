"""Episodes in lockstep or at their own pace: order, batches, tokens, and one prompt for all."""

from __future__ import annotations

import threading

import pytest

from tests.trainer.fakes import FakePolicy, script, shopper
from trainer.errors import InputError
from trainer.rollout.conversation import WordConversation
from trainer.rollout.driver import run_episodes
from trainer.rollout.policy import Conversation, ModelTurn
from trainer.rollout.traces import token_record, without_times
from trainer.rollout.types import EpisodeJob, EpisodeRequest
from trainer.shop.world import World
from trainer.skills.types import Chunk

CHUNK = Chunk("calm", "think slowly")


def requests(world: World, count: int) -> list[EpisodeRequest]:
    jobs = [EpisodeJob.of(5, task, 0, "train") for task in world.split("train")[:count]]
    return [EpisodeRequest(job, job.episode_id, job.noise_key) for job in jobs]


def test_results_come_in_the_order_of_the_requests(mini: World) -> None:
    asked = requests(mini, 9)
    results = run_episodes(mini, FakePolicy(shopper()), asked, batch_size=4)
    assert [result.trace["episode_id"] for result in results] == [r.episode_id for r in asked]


def test_batches_are_cut_from_the_requests_in_order(mini: World) -> None:
    policy = FakePolicy(shopper())
    run_episodes(mini, policy, requests(mini, 9), batch_size=4)
    keys = [[c.noise_key for c in batch.conversations] for batch in policy.batches]
    assert [len(batch) for batch in keys] == [4, 4, 1]
    assert [key for batch in keys for key in batch] == [
        request.noise_key for request in requests(mini, 9)
    ]


def test_an_episode_does_not_depend_on_its_neighbours(mini: World) -> None:
    asked = requests(mini, 9)
    together = run_episodes(mini, FakePolicy(shopper()), asked)
    alone = [run_episodes(mini, FakePolicy(shopper()), [request])[0] for request in asked]
    assert [without_times(r.trace) for r in together] == [without_times(r.trace) for r in alone]


def test_exact_tokens_survive_the_trace(mini: World) -> None:
    results = run_episodes(mini, FakePolicy(shopper()), requests(mini, 5), exact_tokens=True)
    for result in results:
        assert token_record(result.trace) == result.tokens
        assert result.trace["tokens"]["sampled"] == sum(result.tokens.loss_mask)  # type: ignore[union-attr]
    slim = run_episodes(mini, FakePolicy(shopper()), requests(mini, 1))[0]
    assert token_record(slim.trace) is None
    assert slim.trace["tokens"]["total"] == len(slim.tokens.token_ids)  # type: ignore[union-attr]


def test_every_sampled_token_is_counted_exactly_once(mini: World) -> None:
    policy = FakePolicy(shopper())
    results = run_episodes(mini, policy, requests(mini, 6))
    for row, result in enumerate(results):
        sampled = [t for turn in policy.batches[0].turns[row] for t in turn.token_ids]
        record = result.tokens
        assert record is not None
        kept = [t for t, m in zip(record.token_ids, record.loss_mask, strict=True) if m]
        assert kept == sampled


def test_a_chunk_changes_the_prompt_and_nothing_else(mini: World) -> None:
    request = requests(mini, 1)[0]
    skilled = EpisodeRequest(request.job, "e", request.noise_key, (CHUNK,))
    policy = FakePolicy(script("search boots", "buy"))
    bare, assisted = run_episodes(mini, policy, [request, skilled])
    first, second = (c.messages for c in policy.batches[0].conversations)
    assert [m.content for m in first[1:]] == [m.content for m in second[1:]]
    assert second[0].content == first[0].content.replace("skill", "skill think slowly ;", 1)
    assert bare.trace["selected_skills"] == []
    assert assisted.trace["selected_skills"][0]["content_sha256"] == CHUNK.content_sha256


def test_the_limit_defaults_to_the_profile(mini: World) -> None:
    policy = FakePolicy(script("calm"))
    result = run_episodes(mini, policy, requests(mini, 1))[0]
    assert len(result.trace["steps"]) == mini.profile.max_actions
    assert result.trace["provenance"]["runtime"]["max_steps"] == mini.profile.max_actions


def test_a_finished_row_is_asked_for_its_tokens_and_then_left_alone(mini: World) -> None:
    policy = FakePolicy(shopper(1.0))
    run_episodes(mini, policy, requests(mini, 8))
    assert policy.batches[0].freed == set(range(8))


def test_the_word_prompt_ends_with_the_first_page(mini: World) -> None:
    assert mini.language is not None
    builder = WordConversation(mini.language)
    policy = FakePolicy(script("buy"))
    run_episodes(mini, policy, requests(mini, 1), max_turns=1)
    messages = policy.batches[0].conversations[0].messages
    assert messages[-1].content == "home"
    assert builder.identity()["prompt_version"] == "intraskill-word-prompt-v1"


class Served(FakePolicy):
    """The same behind a server that may have four conversations in work."""

    at_once = 4


def test_a_served_policy_plays_the_same_episodes(mini: World) -> None:
    asked = requests(mini, 9)
    local = run_episodes(mini, FakePolicy(shopper()), asked)
    served = run_episodes(mini, Served(shopper()), asked)
    assert [without_times(r.trace) for r in served] == [without_times(r.trace) for r in local]


def test_an_episode_of_a_served_policy_waits_for_no_other(mini: World) -> None:
    asked = requests(mini, 3)
    slow, gone_on = asked[0].noise_key, threading.Event()

    def answer(conversation: Conversation, turn: int) -> ModelTurn:
        if conversation.noise_key == slow:
            assert gone_on.wait(10), "the others wait for this answer"
        elif turn == 1:
            gone_on.set()
        return shopper()(conversation, turn)

    assert all(result.completed for result in run_episodes(mini, Served(answer), asked))


def test_no_more_of_a_served_policy_are_in_work_than_it_allows(mini: World) -> None:
    begun: list[str] = []
    in_work: list[int] = []
    all_four = threading.Barrier(4, action=lambda: in_work.append(len(begun)))

    def answer(conversation: Conversation, turn: int) -> ModelTurn:
        if turn == 0:
            begun.append(conversation.noise_key)
            if len(begun) <= 4:
                all_four.wait(10)
        return shopper()(conversation, turn)

    run_episodes(mini, Served(answer), requests(mini, 9))
    assert (in_work, len(begun)) == ([4], 9)


def test_what_a_served_policy_cannot_do_ends_the_run(mini: World) -> None:
    def answer(conversation: Conversation, turn: int) -> ModelTurn:
        raise InputError("the environment variable is not set")

    with pytest.raises(InputError, match="variable is not set"):
        run_episodes(mini, Served(answer), requests(mini, 9))
