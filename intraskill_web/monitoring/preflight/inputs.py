"""What an experiment's next round will read, and the key under which a look at it is kept."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from intraskill_web.experiments.models import Experiment
from trainer.canonical import fingerprint
from trainer.engines.slime.experiment import HOOKS, LAUNCH

UNSEEN = frozenset({"name", "title", "seed", "mask_seed"})  # what no check depends on


def next_round(experiment: Experiment) -> int:
    """The number that the next round will have."""
    last = experiment.rounds.order_by("-number").first()
    return 0 if last is None else last.number + 1


def target_of(experiment: Experiment, number: int) -> str:
    """What a report of this round is filed under."""
    return f"{experiment.name}/round-{number:03d}"


def inputs_of(experiment: Experiment, number: int) -> tuple[Path, Path]:
    """The bank and the checkpoint that round ``number`` will start from (jobs.layout)."""
    if number == 0:
        start = experiment.folder / "start"
        return start / "skillbank.json", start / "checkpoint"
    before = experiment.folder / f"round-{number - 1:03d}"
    return before / "gate" / "selected_skillbank.json", before / "train" / "checkpoint"


def key_of(experiment: Experiment, number: int, config: dict[str, Any] | None = None) -> str:
    """The hash of the settings, the bank, the checkpoint's record and, on slime, the frozen launch.

    The name and the seeds are left out, which nothing that is looked at depends on.
    """
    bank, checkpoint = inputs_of(experiment, number)
    own = config or settings_of(experiment, number)
    looked_at = {name: value for name, value in own.items() if name not in UNSEEN}
    files = [bank, checkpoint / "checkpoint.json"]
    if own.get("slime"):
        files += [experiment.folder / LAUNCH, experiment.folder / HOOKS]
    return fingerprint([fingerprint(looked_at), *map(digest, files)])


def settings_of(experiment: Experiment, number: int) -> dict[str, Any]:
    """What round ``number`` runs with unless somebody changes it: as the one before it."""
    return own_settings(experiment, number) or dict(experiment.config)


def own_settings(experiment: Experiment, number: int) -> dict[str, Any]:
    """The changed settings that the round inherits from the one before it; mostly none."""
    before = experiment.rounds.filter(number=number - 1).first()
    return dict(before.config) if before else {}


def digest(file: Path) -> str:
    """The hash of a file; a word where there is none."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return "absent"
