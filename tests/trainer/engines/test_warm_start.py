"""Demonstrations as tokens, and a very short warm start."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

from trainer.engines.local.checkpoint import load_checkpoint
from trainer.engines.local.demonstrations import demonstrations, draw_chunks, draw_pool, wrap
from trainer.engines.local.feed import batches
from trainer.engines.local.model import ModelConfig
from trainer.engines.local.tokenizer import WordTokenizer
from trainer.engines.local.warm_start import Learner, Recipe, main
from trainer.shop.mini.tasks import task_key
from trainer.shop.mini.words import vocabulary
from trainer.shop.mini.world import DraftWorld, draft_world
from trainer.shop.types import Task
from trainer.shop.world import World

TOKENIZER = WordTokenizer(vocabulary())


@pytest.fixture(scope="module")
def draft() -> DraftWorld:
    return draft_world()


@pytest.fixture(scope="module")
def pool(mini: World, draft: DraftWorld) -> list[Task]:
    return draw_pool(draft, list(mini.tasks.values()), 200, seed=1)


def test_the_pool_shares_no_task_with_the_splits(mini: World, pool: list[Task]) -> None:
    known = {task_key(task) for task in mini.tasks.values()}
    assert known.isdisjoint(task_key(task) for task in pool)
    assert {task.task_id for task in pool}.isdisjoint(mini.tasks)


def test_only_what_the_shopper_said_is_marked(draft: DraftWorld, pool: list[Task]) -> None:
    for one in islice(demonstrations(draft, TOKENIZER, pool, "a"), 200):
        words = TOKENIZER.decode(one.tokens).split()
        said = 0
        for place, word in enumerate(words):
            if word == "<act>":
                turn = words[place + 1 : words.index("<end>", place) + 1]
                marks = one.shown[place : place + 1 + len(turn)]
                assert marks in ((0, *[1] * len(turn)), (0, *[0] * len(turn)))
                said += sum(marks)
        assert said == sum(one.shown) > 0
        assert words[0] == "<s>"
        assert words[-1] == "<end>"


def test_the_same_key_gives_the_same_demonstrations(draft: DraftWorld, pool: list[Task]) -> None:
    first, second, other = (
        list(islice(demonstrations(draft, TOKENIZER, pool, key), 20)) for key in ("a", "a", "b")
    )
    assert first == second
    assert first != other


def test_some_shoppers_read_nothing_and_most_read_several_chunks() -> None:
    rng = random.Random(1)
    counts = [len(draw_chunks(rng)) for _ in range(2_000)]
    assert counts.count(0) / len(counts) == pytest.approx(0.2, abs=0.03)
    assert max(counts) >= 11


def test_wrapping_keeps_the_sentence() -> None:
    rng = random.Random(1)
    wrapped = [wrap("Never exceed the budget.", rng) for _ in range(200)]
    assert all("Never exceed the budget." in text for text in wrapped)
    assert 0 < sum(text != "Never exceed the budget." for text in wrapped) < 60


def test_learning_lowers_the_loss(draft: DraftWorld, pool: list[Task]) -> None:
    recipe = Recipe(seed=0, steps=24, batch=8, warm_up=4)
    drawn = list(islice(demonstrations(draft, TOKENIZER, pool, "loss"), 8))
    longest = max(len(one.tokens) for one in drawn)
    tokens, shown = np.zeros((8, longest), np.int16), np.zeros((8, longest), np.int8)
    for row, one in enumerate(drawn):
        tokens[row, : len(one.tokens)] = one.tokens
        shown[row, : len(one.shown)] = one.shown
    config = ModelConfig(len(TOKENIZER), width=32, layers=1, heads=2)
    learner = Learner(recipe, config, "cpu")
    losses = [float(learner.learn(step, (tokens, shown))) for step in range(recipe.steps)]
    assert losses[0] == pytest.approx(np.log(len(TOKENIZER)), abs=0.3)
    assert losses[-1] < 0.85 * losses[0]


def test_muon_moves_the_matrices_of_the_blocks_only() -> None:
    learner = Learner(Recipe(), ModelConfig(len(TOKENIZER), width=32, layers=2, heads=2), "cpu")
    moved = {
        type(optimiser).__name__: sum(len(group["params"]) for group in optimiser.param_groups)
        for optimiser, _ in learner.optimisers
    }
    assert moved == {"AdamW": 3 + 2 * 2 + 1 + 1, "Muon": 2 * 4}


@pytest.mark.slow
def test_batches_do_not_depend_on_the_number_of_processes() -> None:
    one, two = (list(batches(3, 40, 2, 4, workers=workers)) for workers in (1, 2))
    for (tokens, shown), (other_tokens, other_shown) in zip(one, two, strict=True):
        assert np.array_equal(tokens, other_tokens)
        assert np.array_equal(shown, other_shown)


@pytest.mark.slow
def test_the_command_publishes_a_checkpoint_with_its_recipe(mini: World, tmp_path: Path) -> None:
    precision = torch.get_float32_matmul_precision()
    try:
        main(["--out", str(tmp_path), "--steps", "2", "--batch", "4", "--pool", "40"])
    finally:
        torch.set_float32_matmul_precision(precision)
    loaded = load_checkpoint(tmp_path, catalogue_sha256=mini.identity()["catalogue_sha256"])
    recipe = loaded.document["recipe"]
    assert (recipe["steps"], recipe["batch"], recipe["device"]) == (2, 4, "cpu")
    assert recipe["torch"] == torch.__version__
