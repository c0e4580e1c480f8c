"""What the policy does depends on the words it read: swap a text and the other habit shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from trainer.engines.local.engine import load_policy
from trainer.engines.local.policy import LocalPolicy
from trainer.rollout.driver import run_episodes
from trainer.rollout.types import EpisodeJob, EpisodeRequest, EpisodeResult
from trainer.shop.world import World
from trainer.skills.bank import load_bank
from trainer.skills.types import Chunk

FOLDER = Path(__file__).resolve().parents[4] / "configs" / "mini"
NAME_THE_BRAND = "Put the preferred brand in the query."
CHOOSE_THE_COLOUR = "Select the wanted colour before you buy."

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def policy(mini: World) -> LocalPolicy:
    """The shipped checkpoint on one thread."""
    return load_policy(FOLDER / "checkpoint", mini, threads=1)[0]


@dataclass(frozen=True)
class Shown:
    """How often each habit showed, among the episodes in which it could."""

    brand: float
    colour: float


def habits_shown(mini: World, policy: LocalPolicy, *texts: str) -> Shown:
    """Play tasks that want a brand and a colour, with chunks of neutral ids that say ``texts``."""
    chunks = tuple(Chunk(f"chunk-{place}", text) for place, text in enumerate(texts))
    tasks = [
        mini.task(task_id)
        for task_id in mini.split("val")
        if "brand" in mini.task(task_id).persona and "colour" in mini.task(task_id).instruction
    ][:240]
    results = play(mini, policy, [task.task_id for task in tasks], chunks)
    brand = colour = bought = 0
    for task, result in zip(tasks, results, strict=True):
        steps: list[dict[str, Any]] = result.trace["steps"]
        actions = [step["action"] for step in steps if step["action"]]
        brand += task.persona["brand"] in actions[0]
        if "click[buy now]" in actions:
            bought += 1
            colour += any(action.startswith("click[colour=") for action in actions)
    return Shown(brand / len(tasks), colour / bought)


def play(
    mini: World, policy: LocalPolicy, task_ids: list[int], chunks: tuple[Chunk, ...]
) -> list[EpisodeResult]:
    jobs = [EpisodeJob.of(7, task_id, 0, "val") for task_id in task_ids]
    return run_episodes(
        mini,
        policy,
        [EpisodeRequest(job, job.episode_id, job.noise_key, chunks) for job in jobs],
    )


def test_swapping_the_text_of_a_chunk_swaps_the_habit(mini: World, policy: LocalPolicy) -> None:
    bare = habits_shown(mini, policy)
    brand = habits_shown(mini, policy, NAME_THE_BRAND)
    colour = habits_shown(mini, policy, CHOOSE_THE_COLOUR)
    assert brand.brand > bare.brand + 0.08
    assert brand.brand > colour.brand + 0.08
    assert colour.colour > bare.colour + 0.08
    assert colour.colour > brand.colour + 0.08
    assert abs(brand.colour - bare.colour) < 0.06
    assert abs(colour.brand - bare.brand) < 0.06


def test_another_wording_works_too_and_strange_words_do_nothing(
    mini: World, policy: LocalPolicy
) -> None:
    bare = habits_shown(mini, policy)
    reworded = habits_shown(mini, policy, "Set the colour that the user wants.")
    strange = habits_shown(mini, policy, "Gefüllte Paprika schmecken am besten im August.")
    assert reworded.colour > bare.colour + 0.08
    assert abs(strange.colour - bare.colour) < 0.06
    assert abs(strange.brand - bare.brand) < 0.06


def test_ids_of_chunks_do_not_matter(mini: World, policy: LocalPolicy) -> None:
    bank = load_bank(FOLDER / "skillbank.json").chunks
    renamed = tuple(Chunk(f"other-{place}", chunk.content) for place, chunk in enumerate(bank))
    task_ids = list(mini.split("val")[:40])
    first, second = (play(mini, policy, task_ids, chunks) for chunks in (bank, renamed))
    assert [one.reward for one in first] == [one.reward for one in second]
    assert [one.tokens for one in first] == [one.tokens for one in second]


def test_the_full_skill_helps_the_starting_policy(mini: World, policy: LocalPolicy) -> None:
    task_ids = list(mini.split("val")[:400])
    bank = load_bank(FOLDER / "skillbank.json").chunks
    bare, full = (
        sum(result.success for result in play(mini, policy, task_ids, chunks)) / len(task_ids)
        for chunks in ((), bank)
    )
    assert 0.40 <= bare <= 0.60
    assert full >= bare + 0.20
