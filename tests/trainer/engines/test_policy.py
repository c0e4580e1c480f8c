"""Batched sampling: exact log-probabilities, noise by key, rows that do not disturb each other."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
import torch

from tests.trainer.engines.models import TOKENIZER, conversation, small_model, text
from trainer.engines.local.cache import KeyValueCache
from trainer.engines.local.noise import gumbel, stream_start
from trainer.engines.local.policy import LocalPolicy, Sampling
from trainer.errors import InputError
from trainer.rollout.policy import Conversation, Message, ModelTurn, TokenRecord


def prompts(count: int, *, seed: int = 0) -> list[Conversation]:
    """Conversations in groups of four with the same prompt; groups differ in length."""
    rng = random.Random(seed)
    texts = [text(rng, rng.randint(4, 30)) for _ in range(-(-count // 4))]
    return [conversation(texts[number // 4], f"key-{number}") for number in range(count)]


def play(
    policy: LocalPolicy, conversations: Sequence[Conversation], *, turns: int = 5
) -> list[tuple[list[ModelTurn], TokenRecord]]:
    """Play a world that answers by the turn's words and lets rows end at different turns."""
    batch = policy.begin(conversations)
    played: list[list[ModelTurn]] = [[] for _ in conversations]
    active = list(range(len(conversations)))
    for turn in range(turns):
        for row, answer in zip(active, batch.generate(active, [()] * len(active)), strict=True):
            played[row].append(answer)
        going_on = [row for row in active if turn < min(turns - 1, 1 + row % 4)]
        batch.extend({row: page(conversations[row], turn) for row in going_on})
        active = going_on
    return [(turns_of, batch.tokens(row)) for row, turns_of in enumerate(played)]


def page(of: Conversation, turn: int) -> tuple[Message, ...]:
    rng = random.Random(f"{of.noise_key}-{turn}")
    return (Message("user", text(rng, rng.randint(2, 8))),)


def full_log_probs(policy: LocalPolicy, record: TokenRecord) -> list[float]:
    """Log-probabilities of the sampled tokens, from one pass over the whole sequence."""
    tokens = torch.tensor([record.token_ids])
    logits = policy.model(tokens[:, :-1]) / policy.sampling.temperature
    values = torch.log_softmax(logits, -1).gather(-1, tokens[:, 1:, None])[0, :, 0].tolist()
    return [values[place - 1] for place, mask in enumerate(record.loss_mask) if mask]


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_log_probabilities_are_those_of_a_full_forward_pass(temperature: float) -> None:
    policy = LocalPolicy(small_model(), TOKENIZER, Sampling(temperature))
    for turns, record in play(policy, prompts(22)):
        sampled = [value for turn in turns for value in turn.log_probs]
        assert sampled == [v for v, m in zip(record.log_probs, record.loss_mask, strict=True) if m]
        assert sampled == pytest.approx(full_log_probs(policy, record), abs=1e-5)


def test_every_token_is_the_largest_of_log_probability_and_noise() -> None:
    policy = LocalPolicy(small_model(), TOKENIZER)
    (turns, record) = play(policy, prompts(3))[2]
    log_probs = torch.log_softmax(policy.model(torch.tensor([record.token_ids])), -1)[0]
    place = record.loss_mask.index(1)
    for turn_number, turn in enumerate(turns):
        for number, token in enumerate(turn.token_ids):
            noise = gumbel([stream_start("key-2", turn_number, number)], len(TOKENIZER))[0]
            assert int((log_probs[place + number - 1] + torch.from_numpy(noise)).argmax()) == token
        place = record.loss_mask.index(1, place + len(turn.token_ids)) if turn != turns[-1] else 0


def test_an_episode_is_the_same_alone_and_in_any_batch() -> None:
    policy = LocalPolicy(small_model(), TOKENIZER)
    conversations = prompts(18)
    together = play(policy, conversations)
    for row in (0, 5, 17):
        alone = policy.begin([conversations[row]])
        for turn_number, expected in enumerate(together[row][0]):
            (turn,) = alone.generate([0], [()])
            assert turn.token_ids == expected.token_ids
            assert turn.log_probs == pytest.approx(expected.log_probs, abs=1e-5)
            alone.extend({0: page(conversations[row], turn_number)})


def test_the_same_batch_gives_the_same_bits() -> None:
    policy = LocalPolicy(small_model(), TOKENIZER)
    assert play(policy, prompts(18)) == play(policy, prompts(18))


def test_siblings_differ_by_their_noise_alone() -> None:
    policy = LocalPolicy(small_model(), TOKENIZER)
    prompt = text(random.Random(3), 9)
    (first,), (second,), (third,) = (
        policy.begin([conversation(prompt, key)]).generate([0], [()]) for key in ("a", "b", "a")
    )
    assert first == third
    assert first.token_ids != second.token_ids


def test_a_record_holds_prompt_turns_and_pages_in_order() -> None:
    policy = LocalPolicy(small_model(), TOKENIZER)
    conversations = prompts(4)
    turns, record = play(policy, conversations)[3]
    expected = TOKENIZER.prompt(message.content for message in conversations[3].messages)
    mask = [0] * len(expected)
    for number, turn in enumerate(turns):
        expected += turn.token_ids
        mask += [1] * len(turn.token_ids)
        if number + 1 < len(turns):
            following = TOKENIZER.following([page(conversations[3], number)[0].content])
            expected += following
            mask += [0] * len(following)
    assert record.token_ids == tuple(expected)
    assert record.loss_mask == tuple(mask)
    assert all(v == 0.0 for v, m in zip(record.log_probs, mask, strict=True) if not m)


def speaking(policy: LocalPolicy, *tokens: int) -> LocalPolicy:
    """The policy with a head that always says one of ``tokens``."""
    with torch.no_grad():
        policy.model.norm.weight.fill_(0.0)  # every word scores zero …
    bias = torch.full((len(TOKENIZER),), -1e4)
    bias[list(tokens)] = 0.0
    policy.model.head.register_forward_hook(lambda *call: call[2] + bias)  # … but these
    return policy


def test_a_turn_that_ends_is_decoded_without_its_end() -> None:
    policy = speaking(LocalPolicy(small_model(), TOKENIZER), TOKENIZER.end)
    (turn,) = policy.begin(prompts(1)).generate([0], [()])
    assert (turn.text, turn.finish_reason, turn.token_ids) == ("", "stop", (TOKENIZER.end,))
    assert turn.usage["completion_tokens"] == 1


def test_a_turn_without_end_is_cut_and_nothing_is_added() -> None:
    word = TOKENIZER.encode("w7")[0]
    policy = speaking(LocalPolicy(small_model(), TOKENIZER), word)
    batch = policy.begin(prompts(1))
    (turn,) = batch.generate([0], [()])
    assert (turn.text, turn.finish_reason) == (" ".join(["w7"] * 7), "length")
    batch.extend({0: (Message("user", "w1"),)})
    assert TOKENIZER.decode(batch.tokens(0).token_ids[-4:]) == "w7 w7 w1 <act>"


def test_a_prompt_that_does_not_fit_is_refused_and_says_why() -> None:
    policy = LocalPolicy(small_model(context=32), TOKENIZER)
    policy.begin([conversation(text(random.Random(0), 23), "k")])
    with pytest.raises(InputError, match="26 tokens, and the model reads 25") as error:
        policy.begin([conversation(text(random.Random(0), 24), "k")])
    assert "skill bank is too long" in str(error.value)


def test_an_episode_that_outgrows_the_context_ends_by_length() -> None:
    policy = LocalPolicy(small_model(context=48), TOKENIZER)
    batch = policy.begin(prompts(4))
    batch.generate(range(4), [()] * 4)
    batch.extend({row: (Message("user", "w1 " * (40 if row == 2 else 2)),) for row in range(4)})
    turns = batch.generate(range(4), [()] * 4)
    assert turns[2] == ModelTurn("", "length", usage=turns[2].usage)
    assert all(turn.token_ids for row, turn in enumerate(turns) if row != 2)


@pytest.fixture
def feeds(monkeypatch: pytest.MonkeyPatch) -> list[tuple[KeyValueCache, list[int], list[int]]]:
    """Every call of ``feed``: the cache, its rows, and the length of each piece."""
    seen: list[tuple[KeyValueCache, list[int], list[int]]] = []
    feed = KeyValueCache.feed

    def recorded(
        self: KeyValueCache, rows: Sequence[int], pieces: Sequence[Sequence[int]]
    ) -> torch.Tensor:
        seen.append((self, list(rows), list(map(len, pieces))))
        return feed(self, rows, pieces)

    monkeypatch.setattr(KeyValueCache, "feed", recorded)
    return seen


def test_a_prompt_is_computed_once_for_all_its_siblings(
    feeds: list[tuple[KeyValueCache, list[int], list[int]]],
) -> None:
    conversations = prompts(12)
    LocalPolicy(small_model(), TOKENIZER).begin(conversations)
    lengths = [sum(len(m.content.split()) for m in c.messages) for c in conversations]
    ((_, _, pieces),) = feeds
    assert sorted(pieces) == sorted(length + 1 for length in lengths[::4])  # <s>, without <act>


def test_episodes_are_computed_together_until_they_differ(
    feeds: list[tuple[KeyValueCache, list[int], list[int]]],
) -> None:
    policy = LocalPolicy(small_model(), TOKENIZER)
    prompt = text(random.Random(1), 9)
    twins = [conversation(prompt, key) for key in ("a", "a", "b")]
    batch = policy.begin(twins)
    first, second, third = batch.generate(range(3), [()] * 3)
    assert first == second != third
    batch.extend({row: (Message("user", "w1 w2"),) for row in range(3)})
    feeds.clear()
    batch.generate(range(3), [()] * 3)
    assert len(feeds[0][1]) == 2  # the twins, and the other one
    batch.extend({0: (Message("user", "w1"),), 1: (Message("user", "w3"),)})
    feeds.clear()
    turns = batch.generate((0, 1), [(), ()])
    assert feeds[0][1] == [0, 1]
    for row, turn in enumerate(turns):
        expected = full_log_probs(policy, batch.tokens(row))[-len(turn.log_probs) :]
        assert turn.log_probs == pytest.approx(expected, abs=1e-5)


def test_an_empty_batch_is_a_batch() -> None:
    batch = LocalPolicy(small_model(), TOKENIZER).begin([])
    assert batch.generate([], []) == []
    batch.extend({})


def test_rows_may_be_asked_one_at_a_time() -> None:
    policy = LocalPolicy(small_model(), TOKENIZER)
    conversations = prompts(4)
    together = policy.begin(conversations).generate(range(4), [()] * 4)
    batch = policy.begin(conversations)
    apart = {row: batch.generate([row], [()])[0] for row in (2, 0, 3, 1)}
    for row, turn in enumerate(together):
        assert apart[row].token_ids == turn.token_ids
        assert apart[row].log_probs == pytest.approx(turn.log_probs, abs=1e-5)


def test_finished_rows_make_room_and_their_cache_is_used_again(
    feeds: list[tuple[KeyValueCache, list[int], list[int]]],
) -> None:
    policy = LocalPolicy(small_model(), TOKENIZER)
    batch = policy.begin(prompts(8))
    batch.generate(range(8), [()] * 8)
    batch.extend({row: (Message("user", "w1"),) for row in (1, 4, 7)})
    feeds.clear()
    batch.generate((1, 4, 7), [()] * 3)
    cache, rows, _ = feeds[0]
    assert rows == [0, 1, 2]
    batch.extend({})
    assert policy.take_cache(8) is cache


def test_the_models_own_words_are_not_taken_twice() -> None:
    batch = LocalPolicy(small_model(), TOKENIZER).begin(prompts(1))
    batch.generate([0], [()])
    with pytest.raises(ValueError, match="own turn"):
        batch.extend({0: (Message("assistant", "w1"), Message("user", "w2"))})


def test_the_identity_follows_the_weights_and_the_sampling() -> None:
    model = small_model()
    first = LocalPolicy(model, TOKENIZER).identity()
    assert first == LocalPolicy(small_model(), TOKENIZER).identity()
    assert first["sampling"]["temperature"] == 1.0
    assert first["checkpoint_id"] == f"local-{first['weights_sha256'][:16]}"
    with torch.no_grad():
        model.head.weight[3, 3] += 1e-3
    assert LocalPolicy(model, TOKENIZER).identity()["checkpoint_id"] != first["checkpoint_id"]
