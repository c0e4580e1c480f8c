"""The engine in its place: episodes of the embedded shop, and a round of training on them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.trainer.grpo.test_training_round import training_run
from trainer.config import OptimiserConfig, PolicyConfig
from trainer.engines.local.checkpoint import load_state, save_checkpoint
from trainer.engines.local.engine import LocalEngine, load_policy, update_settings
from trainer.engines.local.model import ModelConfig, TinyTransformer
from trainer.engines.local.tokenizer import WordTokenizer
from trainer.grpo.engine import TrainingEngine, TrainingEpisode
from trainer.grpo.loop import TrainingRun
from trainer.rollout.driver import run_episodes
from trainer.rollout.types import EpisodeJob, EpisodeRequest
from trainer.shop.world import World
from trainer.skills.types import Chunk

#: what a model says after a word: the words and how much likelier they are than all others
SPEECH = {
    "<act>": {"search": 8.0, "open": 8.0, "buy": 7.0, "back": 6.0},
    "search": {"bag": 9.0, "lamp": 9.0, "tent": 9.0},
    "open": {"#1": 9.0, "#2": 9.0, "#3": 8.0},
}
ELSE = {"<end>": 14.0}


@pytest.fixture(scope="module")
def checkpoint(mini: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model that speaks by ``SPEECH`` and has everything else to learn."""
    assert mini.language is not None
    tokenizer = WordTokenizer(mini.language.vocabulary())
    ids = {word: number for number, word in enumerate(tokenizer.words)}
    model = TinyTransformer(ModelConfig(len(tokenizer), width=32, layers=2, heads=2))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in (model.token, model.previous, model.before_previous, model.head):
            parameter.weight.normal_(std=0.02, generator=generator)
        model.token.weight[:, 0] = 4.0  # channel 0: any word; 1, 2, 3: the words of SPEECH
        for channel, (word, said) in enumerate(SPEECH.items(), 1):
            model.token.weight[ids[word], 0] = 0.0
            model.token.weight[ids[word], channel] = 4.0
            for answer, strength in said.items():
                model.head.weight[ids[answer], channel] = strength / 32**0.5
        model.head.weight[ids["<end>"], 0] = ELSE["<end>"] / 32**0.5
    folder = tmp_path_factory.mktemp("checkpoint")
    catalogue = mini.identity()["catalogue_sha256"]
    save_checkpoint(folder, model, tokenizer, catalogue_sha256=catalogue, recipe={"seed": 1})
    return folder


class EagerEngine(LocalEngine):
    """Finds something to learn in every episode: this model wins far too rarely."""

    def update(self, episodes: Sequence[TrainingEpisode]) -> dict[str, float]:
        lengths = [len(item.tokens.token_ids) for item in episodes]
        mean = sum(lengths) / len(lengths)
        return super().update(
            [
                TrainingEpisode(item.tokens, (mean - length) / 100)
                for item, length in zip(episodes, lengths, strict=True)
            ]
        )


def engine(checkpoint: Path, world: World) -> LocalEngine:
    return EagerEngine.open(
        PolicyConfig(checkpoint=checkpoint),
        OptimiserConfig(learning_rate=1e-3),
        world,
        threads=1,
    )


def requests(world: World, count: int, text: str | None = None) -> list[EpisodeRequest]:
    chunks = () if text is None else (Chunk("c", text),)
    jobs = [EpisodeJob.of(1, task, 0, "val") for task in world.split("val")[:count]]
    return [EpisodeRequest(job, job.episode_id, job.noise_key, chunks) for job in jobs]


def round_of(world: World, checkpoint: Path, folder: Path) -> TrainingRun:
    return training_run(world, folder, engine=engine(checkpoint, world))


def test_it_plays_whole_episodes_and_keeps_their_exact_tokens(
    mini: World, checkpoint: Path
) -> None:
    policy, threads = load_policy(checkpoint, mini, threads=1)
    assert threads == 1
    results = run_episodes(mini, policy, requests(mini, 12), batch_size=5)
    assert all(result.scored for result in results)
    for result in results:
        tokens = result.tokens
        assert tokens is not None
        sampled = sum(tokens.loss_mask)
        assert sampled == sum(
            s["model"]["usage"]["completion_tokens"] for s in result.trace["steps"]
        )
        assert len(tokens.token_ids) == len(tokens.loss_mask) == len(tokens.log_probs)
    assert {result.trace["final"]["termination_reason"] for result in results} == {
        "purchase",
        "action_limit",
    }


def test_the_batch_size_changes_no_word(mini: World, checkpoint: Path) -> None:
    policy, _ = load_policy(checkpoint, mini, threads=1)

    def words(size: int) -> list[Any]:
        results = run_episodes(mini, policy, requests(mini, 9), batch_size=size)
        return [result.tokens.token_ids for result in results if result.tokens]

    assert words(9) == words(4) == words(1)


def test_what_is_read_decides_what_is_said(mini: World, checkpoint: Path) -> None:
    policy, _ = load_policy(checkpoint, mini, threads=1)
    one, other, again = (
        [
            r.tokens.log_probs
            for r in run_episodes(mini, policy, requests(mini, 3, text))
            if r.tokens
        ]
        for text in ("buy right away", "keep the brand in mind", "buy right away")
    )
    assert one == again
    assert one != other


def test_it_is_the_engine_that_the_loop_asks_for(mini: World, checkpoint: Path) -> None:
    opened: TrainingEngine = engine(checkpoint, mini)
    assert opened.facts() == {"threads": 1}
    assert opened.policy.identity()["sampling"]["max_new_tokens"] == 7
    results = run_episodes(mini, opened.policy, requests(mini, 4))
    metrics = opened.update([TrainingEpisode(r.tokens, 1.0) for r in results if r.tokens])
    assert metrics["train/train_rollout_logprob_max_diff"] < 1e-5
    assert metrics["train/pg_clipfrac"] == 0.0
    assert metrics["train/grad_norm"] > 0.0


def test_every_setting_reaches_the_update() -> None:
    config = OptimiserConfig(
        learning_rate=1e-4,
        clip_low=0.1,
        clip_high=0.3,
        betas=(0.8, 0.9),
        weight_decay=0.01,
        warmup_updates=7,
        gradient_clip=2.0,
        micro_batch=16,
    )
    settings = update_settings(config, temperature=0.6)
    assert (settings.clip.low, settings.clip.high) == (0.9, 1.3)
    for name in ("learning_rate", "betas", "weight_decay", "warmup_updates", "gradient_clip"):
        assert getattr(settings, name) == getattr(config, name)
    assert (settings.micro_batch, settings.temperature) == (16, 0.6)


def test_a_round_that_was_interrupted_ends_with_the_same_bytes(
    mini: World, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = round_of(mini, checkpoint, tmp_path / "whole").run()
    assert whole["updates"] == 4

    class Killed(Exception):
        pass

    first = round_of(mini, checkpoint, tmp_path / "broken")
    plan = first._plan

    def die_in_the_second_step(step: int, *rest: Any) -> Any:
        if step == 2:
            raise Killed
        return plan(step, *rest)

    monkeypatch.setattr(TrainingRun, "_plan", lambda self, *rest: die_in_the_second_step(*rest))
    with pytest.raises(Killed):
        first.run()
    monkeypatch.undo()
    resumed = round_of(mini, checkpoint, tmp_path / "broken").run()

    assert resumed == whole
    for name in ("weights.pt", "checkpoint.json"):
        paths = [tmp_path / kind / "checkpoint" / name for kind in ("whole", "broken")]
        assert paths[0].read_bytes() == paths[1].read_bytes()
    record = json.loads((tmp_path / "whole" / "checkpoint" / "checkpoint.json").read_text())
    start = json.loads((checkpoint / "checkpoint.json").read_text())
    assert record["weights_sha256"] != start["weights_sha256"]
    assert record["recipe"] == start["recipe"]
    assert record["step"] == 2
    states = [load_state(tmp_path / kind / "state.pt") for kind in ("whole", "broken")]
    assert states[0]["updates"] == states[1]["updates"] == 4
