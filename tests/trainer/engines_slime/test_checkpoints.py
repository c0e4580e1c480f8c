"""Where a run stands, what the next job's end is, and what its export is bound to."""

from __future__ import annotations

import pytest

from tests.trainer.engines_slime.launch_files import make_launch
from trainer.engines.slime.checkpoints import (
    export_folder,
    first_step,
    latest_iteration,
    mark_export,
    mark_first_step,
    num_rollout,
    round_is_trained,
    verify_saved,
)
from trainer.engines.slime.variables import load_slime_config
from trainer.errors import IncompleteError, InputError
from trainer.files import read_json


def config_of(path, **environ):
    return load_slime_config(path, environ)[0]


def track(folder, text):
    folder.mkdir(exist_ok=True)
    (folder / "latest_checkpointed_iteration.txt").write_text(text)


def test_a_converted_checkpoint_gives_the_published_ends(tmp_path):
    config = config_of(make_launch(tmp_path))
    assert [num_rollout(config, number) for number in range(4)] == [21, 41, 61, 81]


def test_hugging_face_weights_start_at_step_zero(tmp_path):
    path = make_launch(tmp_path, checkpoints={"load": "hf"})
    assert [num_rollout(config_of(path), number) for number in range(2)] == [20, 40]


def test_the_first_step_is_remembered_once_training_loads_what_it_saved(tmp_path):
    path = make_launch(tmp_path, checkpoints={"load": "hf"})
    mark_first_step(config_of(path))
    later = config_of(path, TRAIN_LOAD=str(tmp_path / "save"))
    assert first_step(later) == 0
    assert num_rollout(later, 1) == 40


def test_an_unknown_first_step_is_asked_for(tmp_path):
    path = make_launch(tmp_path, checkpoints={"load": "save"})
    with pytest.raises(InputError, match=r"loop\.first_step"):
        first_step(config_of(path))
    told = make_launch(tmp_path / "b", checkpoints={"load": "save"}, loop={"first_step": 1})
    assert first_step(config_of(told)) == 1


@pytest.mark.parametrize(("text", "number"), [("123", 123), ("iter_0000123", 123), ("0\n", 0)])
def test_both_forms_of_the_tracker_are_read(tmp_path, text, number):
    track(tmp_path, text)
    assert latest_iteration(tmp_path) == number


def test_a_folder_without_tracker_has_no_iteration(tmp_path):
    assert latest_iteration(tmp_path) is None


def test_a_round_is_trained_when_its_last_step_is_saved(tmp_path):
    config = config_of(make_launch(tmp_path))
    track(tmp_path / "save", "19")
    assert not round_is_trained(config, 0)
    with pytest.raises(IncompleteError, match="round 0 ends with 20"):
        verify_saved(config, 0)
    track(tmp_path / "save", "20")
    assert round_is_trained(config, 0)
    assert verify_saved(config, 0) == 20
    assert not round_is_trained(config, 1)


def test_the_export_folder_carries_the_step(tmp_path):
    config = config_of(make_launch(tmp_path))
    assert export_folder(config, 40) == tmp_path / "export" / "step-40"


def test_an_export_is_bound_to_its_weights_by_a_hash(tmp_path):
    with pytest.raises(IncompleteError):
        mark_export(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    first = mark_export(tmp_path)
    assert read_json(tmp_path / "export.json")["weights_sha256"] == first
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    assert mark_export(tmp_path) != first
