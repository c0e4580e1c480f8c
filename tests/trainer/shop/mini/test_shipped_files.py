"""The shipped skill and checkpoint: whole, bound to their world, silent about what helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer.engines.local.checkpoint import load_checkpoint
from trainer.errors import InputError
from trainer.files import read_json
from trainer.shop.mini.habits import HABITS, HASTE, INERT
from trainer.shop.mini.language import words_of
from trainer.shop.mini.words import vocabulary
from trainer.shop.world import World
from trainer.skills.bank import load_bank

FOLDER = Path(__file__).resolve().parents[4] / "configs" / "mini"


def test_the_first_bank_has_ten_readable_chunks_with_neutral_ids() -> None:
    bank = load_bank(FOLDER / "skillbank.json")
    assert len(bank.chunks) == 10
    for chunk in bank.chunks:
        assert chunk.skill_id == f"chunk-{chunk.content_sha256[:12]}"
        assert set(words_of(chunk.content)) <= set(vocabulary())


def test_the_first_bank_says_the_same_of_every_chunk() -> None:
    bank = load_bank(FOLDER / "skillbank.json")
    for chunk in bank.chunks:
        assert chunk.metadata["estimated_effect"] == 0.05
        assert set(chunk.metadata) == {"title", "estimated_effect"}


def test_the_first_bank_helps_harms_and_leaves_something_to_be_found() -> None:
    texts = {chunk.content for chunk in load_bank(FOLDER / "skillbank.json").chunks}
    firm = {habit.name for habit in HABITS if not texts.isdisjoint(habit.firm)}
    vague = {habit.name for habit in HABITS if not texts.isdisjoint(habit.vague)}
    assert firm == {"brand", "next_page", "missing_option", "colour"}
    assert vague == {"budget"}
    assert {habit.name for habit in HABITS} - firm - vague == {"details", "size"}
    assert len(texts.intersection(INERT)) == 4
    assert len(texts.intersection(HASTE)) == 1


def test_the_checkpoint_belongs_to_this_world(mini: World) -> None:
    catalogue = mini.identity()["catalogue_sha256"]
    loaded = load_checkpoint(FOLDER / "checkpoint", catalogue_sha256=catalogue)
    assert loaded.tokenizer.words == vocabulary()
    assert loaded.document["recipe"]["seed"] == 1
    assert sum(parameter.numel() for parameter in loaded.model.parameters()) < 800_000


def test_the_checkpoint_refuses_another_catalogue() -> None:
    with pytest.raises(InputError, match="another catalogue"):
        load_checkpoint(FOLDER / "checkpoint", catalogue_sha256="0" * 64)


def test_the_checkpoint_is_small() -> None:
    size = sum(path.stat().st_size for path in (FOLDER / "checkpoint").iterdir())
    assert size < 8_000_000
    assert read_json(FOLDER / "checkpoint" / "checkpoint.json")["weights_sha256"] == (
        WEIGHTS_SHA256
    )


WEIGHTS_SHA256 = "392ac98e7273e65a25d7c25ca7b75fcea57d2f327ed7bb0521bd7f802e80604c"
