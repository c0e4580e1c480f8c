"""Checkpoints: identity of weights, binding to the catalogue, damage; and resume points."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from tests.trainer.engines.models import TOKENIZER, small_model
from tests.trainer.engines.test_update import groups
from trainer.engines.local.checkpoint import (
    load_checkpoint,
    load_state,
    save_checkpoint,
    save_state,
    weights_sha256,
)
from trainer.engines.local.update import Learner, UpdateSettings
from trainer.errors import InputError

CATALOGUE = "c" * 64
RECIPE = {"seed": 0, "steps": 3}


def saved(folder: Path, seed: int = 0) -> dict[str, object]:
    return save_checkpoint(
        folder,
        small_model(seed),
        TOKENIZER,
        catalogue_sha256=CATALOGUE,
        recipe=RECIPE,
        record={"step": 20},
    )


def test_a_checkpoint_comes_back_as_it_was(tmp_path: Path) -> None:
    document = saved(tmp_path)
    loaded = load_checkpoint(tmp_path, catalogue_sha256=CATALOGUE)
    expected = small_model()
    assert loaded.document == document == json.loads((tmp_path / "checkpoint.json").read_text())
    assert (document["step"], document["recipe"]) == (20, RECIPE)
    assert loaded.tokenizer.words == TOKENIZER.words
    assert loaded.model.config == expected.config
    tokens = torch.randint(5, 50, (2, 30))
    assert torch.equal(loaded.model(tokens), expected(tokens))


def test_the_identity_is_that_of_the_tensors_not_of_the_file(tmp_path: Path) -> None:
    document = saved(tmp_path)
    before = (tmp_path / "weights.pt").read_bytes()
    weights = torch.load(tmp_path / "weights.pt", weights_only=True)
    torch.save(dict(reversed(weights.items())), tmp_path / "weights.pt")
    assert (tmp_path / "weights.pt").read_bytes() != before
    loaded = load_checkpoint(tmp_path, catalogue_sha256=CATALOGUE)
    assert weights_sha256(loaded.model) == document["weights_sha256"]


def test_one_bit_of_one_weight_is_another_identity() -> None:
    model = small_model()
    before = weights_sha256(model)
    with torch.no_grad():
        bits = model.head.weight.view(-1)[5:6].view(torch.int32)
        bits ^= 1
    assert weights_sha256(model) != before
    with torch.no_grad():
        bits ^= 1
    assert weights_sha256(model) == before == weights_sha256(small_model())


def test_the_shipped_format_is_pinned() -> None:
    """The definition itself, so that identities recorded elsewhere stay true."""
    import hashlib

    model = small_model(layers=1)
    digest = hashlib.sha256()
    for name in sorted(model.state_dict()):
        array = model.state_dict()[name].numpy()
        digest.update(f"{name}|float32|{','.join(map(str, array.shape))}\n".encode())
        digest.update(array.astype("<f4").tobytes())
    assert weights_sha256(model) == digest.hexdigest()


def test_a_checkpoint_of_another_catalogue_is_refused(tmp_path: Path) -> None:
    saved(tmp_path)
    with pytest.raises(InputError, match="another catalogue than dddd") as error:
        load_checkpoint(tmp_path, catalogue_sha256="d" * 64)
    assert error.value.field == "catalogue_sha256"
    assert error.value.remedy


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "weights.pt").unlink(), "no such file"),
        (lambda folder: (folder / "checkpoint.json").unlink(), "no such file"),
        (lambda folder: (folder / "weights.pt").write_bytes(b"PK"), "cannot be read"),
        (lambda folder: torch.save({"x": torch.ones(1)}, folder / "weights.pt"), "does not fit"),
        (
            lambda folder: torch.save(small_model(5).state_dict(), folder / "weights.pt"),
            "not those of checkpoint.json",
        ),
        (lambda folder: (folder / "checkpoint.json").write_text("{}"), "is no intraskill"),
    ],
)
def test_damage_is_named(tmp_path: Path, damage, message: str) -> None:  # type: ignore[no-untyped-def]
    saved(tmp_path)
    damage(tmp_path)
    with pytest.raises(InputError, match=message):
        load_checkpoint(tmp_path, catalogue_sha256=CATALOGUE)


def test_training_that_was_interrupted_continues_to_the_same_bits(tmp_path: Path) -> None:
    settings = UpdateSettings(learning_rate=1e-3, warmup_updates=3)
    batches = [groups(2, seed=number) for number in range(5)]

    whole = Learner(small_model(), settings)
    expected = [whole.update(batch) for batch in batches]

    first = Learner(small_model(), settings)
    found = [first.update(batch) for batch in batches[:2]]
    save_state(tmp_path / "state.pt", {**first.state(), "counters": {"step": 2}})
    second = Learner(small_model(seed=7), settings)
    state = load_state(tmp_path / "state.pt")
    assert state["counters"] == {"step": 2}
    second.restore(state)
    found += [second.update(batch) for batch in batches[2:]]

    assert found == expected
    assert weights_sha256(second.model) == weights_sha256(whole.model)
    for mine, theirs in zip(
        second.optimiser.state_dict()["state"].values(),
        whole.optimiser.state_dict()["state"].values(),
        strict=True,
    ):
        assert all(torch.equal(mine[key], theirs[key]) for key in theirs)


def test_a_foreign_state_is_refused(tmp_path: Path) -> None:
    torch.save({"model": {}}, tmp_path / "state.pt")
    with pytest.raises(InputError, match="is no intraskill-local-state-v1"):
        load_state(tmp_path / "state.pt")
