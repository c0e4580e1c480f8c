"""The checkpoints of an experiment on slime: exported weights by link, and a record of them.

The weights of a start model stay where they are; a round's lie in its training folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainer.engines.slime.checkpoints import (
    MARK,
    export_folder,
    first_step,
    mark_export,
    verify_saved,
)
from trainer.engines.slime.config import SlimeConfig
from trainer.errors import InputError
from trainer.files import read_json, write_json

EXPORT = "export"  # in a checkpoint's folder: a link to the exported weights, or links to each
RECORD = "checkpoint.json"


def export_of(folder: Path) -> Path:
    """Where the weights of a start checkpoint lie."""
    return Path(read_json(folder / RECORD)["export"])


def first_step_of(training: Path) -> int:
    """The id of the experiment's first step, as a finished round's training folder records it."""
    return int(read_json(training / "checkpoint" / RECORD)["first_step"])


def start_checkpoint(folder: Path, model: Path) -> None:
    """Make ``folder`` the checkpoint of a Hugging Face folder, which stays where it is: its files
    are linked one by one, because what a server marks them with may not be written there.

    Raises InputError when the folder holds no weights.
    """
    require_weights(model)
    links = folder / EXPORT
    links.mkdir(parents=True)
    for file in model.resolve().iterdir():
        if file.name != MARK:
            (links / file.name).symlink_to(file)
    _record(folder, str(model.resolve()), {"checkpoint_id": model.name, "step": 0})


def require_weights(model: Path) -> None:
    """Raise InputError unless a folder holds a Hugging Face checkpoint."""
    weights = any(file.is_file() for file in model.glob("*.safetensors"))
    if not (model / "config.json").is_file() or not weights:
        raise InputError(
            "no Hugging Face checkpoint: config.json or *.safetensors is missing",
            file=model,
            field="start.checkpoint",
            remedy="Name the folder of the start model, as hf_checkpoint of the launch file does",
        )


def round_checkpoint(folder: Path, launch: SlimeConfig) -> dict[str, Any]:
    """Make ``folder`` the checkpoint that a finished round saved; returns its record.

    Raises IncompleteError when the round's last step or its export is missing.
    """
    saved = verify_saved(launch, launch.loop.resume_round)
    export = export_folder(launch, saved)
    weights = mark_export(export)
    first = first_step(launch)
    facts = {
        "checkpoint_id": f"export-{weights[:12]}",
        "weights_sha256": weights,
        "step": saved + 1 - first,
        "rollout_id": saved,
        "first_step": first,
    }
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / EXPORT
    link.unlink(missing_ok=True)
    link.symlink_to(_seen_from(folder, export), target_is_directory=True)
    return _record(folder, str(link.readlink()), facts)


def _record(folder: Path, where: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    record = {"format": "slime-export-v1", "engine": "slime", "export": where, **facts}
    write_json(folder / RECORD, record)
    return record


def _seen_from(folder: Path, export: Path) -> Path:
    """An export of the round by a relative way, so that a run folder can move."""
    inside = export.resolve().is_relative_to(folder.resolve().parent)
    return Path(os.path.relpath(export, folder)) if inside else export.resolve()
