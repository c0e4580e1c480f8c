"""Checkpoints of a slime run: where it stands, what comes next, export.

slime counts steps over the whole experiment: ``--num-rollout`` is a cumulative exclusive end, and
the first step has id 0 when training starts from Hugging Face weights and 1 when it starts from a
converted checkpoint (training.md §6.4, §9.26). Both are derived here from what lies on disk.
"""

from __future__ import annotations

import re
from pathlib import Path

from trainer.canonical import fingerprint, sha256_file
from trainer.engines.slime.config import SlimeConfig
from trainer.errors import IncompleteError, InputError
from trainer.files import read_json, write_json

TRACKER = "latest_checkpointed_iteration.txt"
FIRST_STEP = "first-step.json"
MARK = "export.json"  # beside exported weights: their hash
_ITERATION = re.compile(r"(?:iter_)?0*(\d+)")


def latest_iteration(folder: Path) -> int | None:
    """The iteration that Megatron's tracker names (``123`` or ``iter_0000123``); None without one.

    Raises InputError when the tracker holds something else.
    """
    tracker = folder / TRACKER
    if not tracker.is_file():
        return None
    text = tracker.read_text(encoding="utf-8").strip()
    match = _ITERATION.fullmatch(text)
    if match is None:
        raise InputError(
            "the tracker names no iteration",
            file=tracker,
            value=text,
            remedy="point checkpoints.load at a converted or saved checkpoint",
        )
    return int(match[1])


def is_hf_checkpoint(folder: Path) -> bool:
    """Whether a folder holds Hugging Face weights and no Megatron tracker."""
    return (folder / "config.json").is_file() and not (folder / TRACKER).is_file()


def first_step(config: SlimeConfig) -> int:
    """The id of the experiment's first step: 0 from Hugging Face weights, 1 from converted ones.

    Taken from ``loop.first_step``, else from the mark an earlier launch left beside the checkpoints
    that are saved or loaded, else from the checkpoint that round 0 loads. Raises InputError when
    none of them tells.
    """
    if config.loop.first_step is not None:
        return config.loop.first_step
    points = config.checkpoints
    for mark in (points.save / FIRST_STEP, points.load / FIRST_STEP):
        if mark.is_file():
            return int(read_json(mark)["first_step"])
    if is_hf_checkpoint(points.load):
        return 0
    # what a later round loads was saved by the round before, at any step
    if points.load == points.save or config.loop.resume_round > 0:
        raise InputError(
            "cannot tell whether the first step had id 0 or 1",
            file=points.load,
            field="loop.first_step",
            remedy="set it: 0 when training began from Hugging Face weights, else 1",
        )
    loaded = latest_iteration(points.load)
    return 0 if loaded is None else loaded + 1


def mark_first_step(config: SlimeConfig) -> None:
    """Note the first step's id beside the saved checkpoints, once, before the first launch."""
    mark = config.checkpoints.save / FIRST_STEP
    if not mark.is_file():
        write_json(mark, {"first_step": first_step(config)})


def num_rollout(config: SlimeConfig, round_number: int) -> int:
    """The exclusive end of round ``round_number`` (from 0): 21, 41, 61, 81 as published."""
    return first_step(config) + (round_number + 1) * config.loop.steps_per_round


def round_is_trained(config: SlimeConfig, round_number: int) -> bool:
    """Whether the round's last step is saved, so that training can be skipped."""
    saved = latest_iteration(config.checkpoints.save)
    return saved is not None and saved >= num_rollout(config, round_number) - 1


def verify_saved(config: SlimeConfig, round_number: int) -> int:
    """The iteration saved by the round; raises IncompleteError when its last step is missing."""
    wanted = num_rollout(config, round_number) - 1
    saved = latest_iteration(config.checkpoints.save)
    if saved is None or saved < wanted:
        raise IncompleteError(
            f"the job ended with iteration {saved} in {config.checkpoints.save}, "
            f"but round {round_number} ends with {wanted}: start the round again to resume"
        )
    return saved


def export_folder(config: SlimeConfig, step: int) -> Path:
    """Where the weights of ``step`` are exported. Raises InputError without an export setting."""
    if config.checkpoints.save_hf is None:
        raise InputError(
            "no Hugging Face export is configured",
            field="checkpoints.save_hf",
            remedy="set it, for example to runs/hf/step-{rollout_id}",
        )
    return Path(str(config.checkpoints.save_hf).format(rollout_id=step))


def export_identity(folder: Path) -> dict[str, object]:
    """What binds a checkpoint's label to its weights: the hash over all files of an export.

    Raises IncompleteError when the export is not whole. Large weights are read once, in chunks.
    """
    names = sorted(p.name for p in folder.glob("*.safetensors"))
    if not (folder / "config.json").is_file() or not names:
        raise IncompleteError(f"{folder} is no finished export: config.json or weights are missing")
    files = {name: sha256_file(folder / name) for name in ["config.json", *names]}
    return {"path": str(folder), "files": files, "weights_sha256": fingerprint(files)}


def mark_export(folder: Path) -> str:
    """Write ``export.json`` beside exported weights and return their hash."""
    identity = export_identity(folder)
    write_json(folder / MARK, {k: v for k, v in identity.items() if k != "path"})
    return str(identity["weights_sha256"])
