"""The update against a plain implementation on whole sequences, and what may not influence it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from tests.trainer.engines.models import (
    TOKENIZER,
    episode,
    record,
    siblings,
    small_model,
    text,
)
from trainer.engines.local.loss import ClipRange, LossSums, micro_batches, summed_loss
from trainer.engines.local.model import TinyTransformer
from trainer.engines.local.update import Learner, UpdateSettings
from trainer.grpo.engine import TrainingEpisode
from trainer.rollout.policy import TokenRecord


def groups(count: int, size: int = 4, *, seed: int = 0) -> list[TrainingEpisode]:
    """``count`` groups of siblings with a prompt each; turns and pages of all lengths."""
    rng = random.Random(seed)
    episodes = []
    for _ in range(count):
        prompt = TOKENIZER.prompt([text(rng, rng.randint(2, 30))])
        records = [episode(rng, prompt, turns=rng.randint(1, 5)) for _ in range(size)]
        episodes += [TrainingEpisode(tokens, rng.uniform(-1, 1)) for tokens in records]
    return episodes


def alike(count: int, size: int = 8, *, seed: int = 0) -> list[TrainingEpisode]:
    """Groups whose siblings share turns as well, some of them everything."""
    rng = random.Random(seed)
    prompts = [TOKENIZER.prompt([text(rng, rng.randint(2, 30))]) for _ in range(count)]
    records = [tokens for prompt in prompts for tokens in siblings(rng, prompt, size)]
    return [TrainingEpisode(tokens, rng.uniform(-1, 1)) for tokens in records]


def near_the_policy(
    model: TinyTransformer, given: TrainingEpisode, shift: float
) -> TrainingEpisode:
    """The episode with old log-probabilities ``shift`` away from what the model says now."""
    rng = random.Random(str(given.tokens.token_ids))
    now = log_probs_of(model, given.tokens).tolist()
    old = [
        value + rng.uniform(-shift, shift) if mask else 0.0
        for value, mask in zip(now, given.tokens.loss_mask, strict=True)
    ]
    return TrainingEpisode(replace(given.tokens, log_probs=tuple(old)), given.advantage)


def log_probs_of(
    model: TinyTransformer, tokens: TokenRecord, *, temperature: float = 1.0
) -> torch.Tensor:
    """The log-probability of every token (0 for the first), from the whole sequence."""
    ids = torch.tensor([tokens.token_ids])
    log_probs = torch.log_softmax(model(ids) / temperature, -1)
    return torch.cat((torch.zeros(1), log_probs[0, :-1].gather(-1, ids[0, 1:, None])[:, 0]))


def plain_loss(
    model: TinyTransformer, episodes: Sequence[TrainingEpisode], *, temperature: float = 1.0
) -> torch.Tensor:
    """The definition, an episode and a token at a time."""
    total, count = torch.zeros(()), 0
    for item in episodes:
        now = log_probs_of(model, item.tokens, temperature=temperature)
        for place, mask in enumerate(item.tokens.loss_mask):
            if mask:
                ratio = (now[place] - item.tokens.log_probs[place]).exp()
                clipped = ratio.clamp(0.8, 1.28)
                total = total - torch.minimum(ratio * item.advantage, clipped * item.advantage)
                count += 1
    return total / count


def packed_gradients(
    model: TinyTransformer, episodes: Sequence[TrainingEpisode], *, size: int = 8
) -> tuple[float, dict[str, torch.Tensor]]:
    """Loss and gradients of the implementation."""
    model.zero_grad(set_to_none=True)
    sums = LossSums()
    tokens = sum(sum(item.tokens.loss_mask) for item in episodes)
    for batch in micro_batches(episodes, size):
        loss = summed_loss(model, batch, clip=ClipRange(), temperature=1.0, sums=sums)
        (loss / tokens).backward()
    return sums.loss / tokens, gradients(model)


def gradients(model: TinyTransformer) -> dict[str, torch.Tensor]:
    return {
        name: torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.clone()
        for name, parameter in model.named_parameters()
    }


@pytest.mark.parametrize(
    ("given", "shift"), [(groups(5), 0.0), (groups(5), 0.6), (alike(3), 0.0), (alike(3), 0.6)]
)
def test_loss_and_gradients_are_those_of_the_definition(
    given: list[TrainingEpisode], shift: float
) -> None:
    model = small_model()
    episodes = [near_the_policy(model, item, shift) for item in given]
    plain = plain_loss(model, episodes)
    model.zero_grad(set_to_none=True)
    plain.backward()
    expected = gradients(model)
    loss, found = packed_gradients(model, episodes)
    assert loss == pytest.approx(float(plain.detach()), abs=1e-6)
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, atol=1e-6, rtol=1e-4, msg=name)
    assert max(float(gradient.abs().max()) for gradient in expected.values()) > 1e-3


def test_a_worked_example() -> None:
    """One word in four is as likely as any other; ratios, clipping and divisor by hand."""
    model = small_model()
    with torch.no_grad():
        model.norm.weight.fill_(0.0)
    even = -torch.log(torch.tensor(float(len(TOKENIZER)))).item()

    def one(advantage: float, *ratios: float) -> TrainingEpisode:
        old = [even - torch.log(torch.tensor(ratio)).item() for ratio in ratios]
        ids = (1, 9, 2, *range(10, 10 + len(ratios)))
        mask = (0, 0, 0, *[1] * len(ratios))
        return TrainingEpisode(TokenRecord(ids, mask, (0.0, 0.0, 0.0, *old)), advantage)

    learner = Learner(model, UpdateSettings())
    metrics = learner.update([one(0.5, 1.0, 2.0), one(-0.25, 0.5, 1.1, 3.0), one(0.0, 1.0)])
    # A > 0: 1·0.5 + min(2, 1.28)·0.5; A < 0: max(0.5, 0.8), 1.1 and 3 times -0.25; six tokens
    gain = 0.5 * (1.0 + 1.28) - 0.25 * (0.8 + 1.1 + 3.0)
    assert metrics.loss == pytest.approx(-gain / 6, abs=1e-6)
    assert (metrics.tokens, metrics.trained_tokens) == (6, 5)
    assert metrics.clip_fraction == pytest.approx(2 / 5)
    moved = [0.0, 0.693147, -0.693147, 0.0953102, 1.0986123]
    assert metrics.approx_kl == pytest.approx(-sum(moved) / 5, abs=1e-5)
    assert metrics.max_log_prob_difference == pytest.approx(1.0986123, abs=1e-5)
    assert metrics.entropy == pytest.approx(-even, abs=1e-5)


def test_siblings_that_share_computation_do_not_share_results() -> None:
    model = small_model()
    episodes = alike(2)
    alone = [packed_gradients(model, [item]) for item in episodes]
    counts = [sum(item.tokens.loss_mask) for item in episodes]
    loss, together = packed_gradients(model, episodes, size=12)
    expected = sum(value * count for (value, _), count in zip(alone, counts, strict=True))
    assert loss == pytest.approx(expected / sum(counts), abs=1e-6)
    for name, gradient in together.items():
        parts = [found[name] * count for (_, found), count in zip(alone, counts, strict=True)]
        torch.testing.assert_close(sum(parts) / sum(counts), gradient, atol=1e-6, rtol=1e-4)


def test_what_siblings_have_in_common_is_computed_once() -> None:
    prompt = [1, *range(10, 20), TOKENIZER.act]
    turns = [([20 + n, TOKENIZER.end], [30, 31, TOKENIZER.act]) for n in range(4)]
    paths = ([0, 1, 2], [0, 1, 2], [0, 1, 3], [0, 2])
    episodes = [TrainingEpisode(record(prompt, [turns[n] for n in path]), 1.0) for path in paths]
    (batch,) = micro_batches(episodes, 8)
    # prompt to before <act>; turn 0, 1 and 2: <act>, two sampled, two of the page, an input each;
    # an episode's last turn: <act> and the first of its two sampled tokens
    assert len(batch.packed.tokens) == 11 + 5 + 5 + 2 + 2 + 2
    assert len(batch.packed.targets) == 2 * sum(map(len, paths))
    assert len(batch.packed.asked) == 2 * len({tuple(p[:n]) for p in paths for n in (1, 2, 3)})


def test_micro_batches_hold_whole_groups_and_change_nothing() -> None:
    model = small_model()
    episodes = groups(6)
    sizes = [len(set(batch.packed.asked.tolist())) for batch in micro_batches(episodes, 8)]
    assert len(sizes) == 3
    assert sum(sizes) == sum(sum(item.tokens.loss_mask) for item in episodes)
    small, large = (packed_gradients(model, episodes, size=size)[1] for size in (4, 100))
    for name, gradient in small.items():
        torch.testing.assert_close(gradient, large[name], atol=1e-6, rtol=1e-4)


def test_the_loss_looks_at_sampled_tokens_only() -> None:
    model = small_model()
    episodes = groups(2)
    changed = []
    for item in episodes:
        tokens = item.tokens
        changed.append(
            TrainingEpisode(
                replace(
                    tokens,
                    # what is recorded at unsampled places, and a last page nobody answered
                    log_probs=tuple(
                        value if mask else -7.5
                        for value, mask in zip(tokens.log_probs, tokens.loss_mask, strict=True)
                    )
                    + (0.0,) * 3,
                    token_ids=(*tokens.token_ids, 8, 9, 10),
                    loss_mask=(*tokens.loss_mask, 0, 0, 0),
                ),
                item.advantage,
            )
        )
    (loss, expected), (other, found) = (
        packed_gradients(model, batch) for batch in (episodes, changed)
    )
    assert loss == other
    assert all(torch.equal(found[name], gradient) for name, gradient in expected.items())


def test_episodes_without_advantage_count_in_the_divisor_only() -> None:
    model = small_model()
    episodes = groups(2)
    tied = [TrainingEpisode(item.tokens, 0.0) for item in groups(1, seed=9)]
    extra = sum(sum(item.tokens.loss_mask) for item in tied)
    tokens = sum(sum(item.tokens.loss_mask) for item in episodes)
    (loss, expected), (other, found) = (
        packed_gradients(model, batch) for batch in (episodes, episodes + tied)
    )
    scale = tokens / (tokens + extra)
    assert other == pytest.approx(loss * scale, rel=1e-6)
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient * scale, atol=1e-6, rtol=1e-4)


def test_without_any_advantage_nothing_moves() -> None:
    model = small_model()
    learner = Learner(model, UpdateSettings(learning_rate=1e-3))
    learner.update(groups(2))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    metrics = learner.update([TrainingEpisode(item.tokens, 0.0) for item in groups(2)])
    assert (metrics.loss, metrics.grad_norm, metrics.trained_tokens) == (0.0, 0.0, 0)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_the_update_raises_what_was_rewarded() -> None:
    model = small_model()
    better, worse = groups(1, 2)
    episodes = [TrainingEpisode(better.tokens, 1.0), TrainingEpisode(worse.tokens, -1.0)]
    before = [float(log_probs_of(model, item.tokens).sum().detach()) for item in episodes]
    learner = Learner(model, UpdateSettings(learning_rate=1e-3, warmup_updates=0))
    for _ in range(3):
        learner.update([near_the_policy(model, item, 0.0) for item in episodes])
    after = [float(log_probs_of(model, item.tokens).sum().detach()) for item in episodes]
    assert after[0] > before[0]
    assert after[1] < before[1]


def test_the_temperature_is_that_of_the_sampler() -> None:
    model = small_model()
    episodes = groups(2)
    learner = Learner(model, UpdateSettings(temperature=0.6))
    expected = float(plain_loss(model, episodes, temperature=0.6).detach())
    assert learner.update(episodes).loss == pytest.approx(expected, rel=1e-5)


def test_the_learning_rate_warms_up_and_the_gradient_is_clipped() -> None:
    learner = Learner(small_model(), UpdateSettings(learning_rate=1e-3, warmup_updates=4))
    rates = [learner.update(groups(1, seed=n)).learning_rate for n in range(6)]
    assert rates == pytest.approx([0.25e-3, 0.5e-3, 0.75e-3, 1e-3, 1e-3, 1e-3])
    assert learner.updates == 6


def test_the_same_updates_give_the_same_bits() -> None:
    weights = []
    for _ in range(2):
        learner = Learner(small_model(), UpdateSettings(learning_rate=1e-3))
        for number in range(3):
            learner.update(groups(3, seed=number))
        weights.append(learner.model.state_dict())
    assert all(torch.equal(value, weights[1][name]) for name, value in weights[0].items())


def test_numbers_that_cannot_be_true_stop_the_update_before_the_weights_move() -> None:
    learner = Learner(small_model(), UpdateSettings())
    before = {name: value.clone() for name, value in learner.model.state_dict().items()}
    broken = [TrainingEpisode(item.tokens, float("nan")) for item in groups(1)]
    with pytest.raises(FloatingPointError, match="update 1"):
        learner.update(broken)
    assert all(
        torch.equal(before[name], value) for name, value in learner.model.state_dict().items()
    )
    with pytest.raises(ValueError, match="no sampled token"):
        learner.update([TrainingEpisode(TokenRecord((1, 2), (0, 0), (0.0, 0.0)), 1.0)])
