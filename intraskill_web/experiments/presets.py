"""The arms of a sweep: what each changes in the base, from ``configs/presets``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from intraskill_web.experiments.config_changes import from_dotted, merged
from trainer.config_files import read_yaml
from trainer.errors import InputError
from trainer.experiment_config import ExperimentConfig

# in the order in which arms are shown; the first is what the others are compared with
LABELS: Mapping[str, tuple[str | Promise, str | Promise]] = {
    "published": (_("The method"), _("masks at two levels, a gate each round")),
    "plain-grpo": (_("Plain GRPO"), _("no skill in training")),
    "fixed-s0": (_("Fixed S0"), _("the first bank stays for ever")),
    "no-mask": (_("No mask"), _("assisted groups see every chunk")),
    "no-gate": (_("No gate"), _("every candidate joins untested")),
    "adaptive-q": (_("Adaptive q"), _("more skill-free groups as the gap closes")),
    "chunk-budget": (_("Chunk budget"), _("three chunks on average in every round")),
}


@dataclass(frozen=True, slots=True)
class Preset:
    """One arm: its key, its words, and its changes by dotted key."""

    key: str
    label: str
    about: str
    changes: Mapping[str, Any]


def presets() -> list[Preset]:
    """All arms. Raises InputError for a file that is missing or broken."""
    return [preset(key) for key in LABELS]


def preset(key: str) -> Preset:
    """One arm by its key. Raises InputError when there is none, or its file is broken."""
    if key not in LABELS:
        raise InputError(
            "no such arm", field="arms", value=key, remedy=f"Known: {', '.join(LABELS)}"
        )
    path = Path(settings.BASE_DIR) / "configs" / "presets" / f"{key}.yaml"
    changes = read_yaml(path).get("changes")
    if not isinstance(changes, dict):
        raise InputError(
            "must be a mapping of dotted keys to values", file=path, field="changes", value=changes
        )
    label, about = LABELS[key]
    return Preset(key, str(label), str(about), changes)


def arm_config(base: ExperimentConfig, arm: Preset, *, seed: int, name: str) -> ExperimentConfig:
    """The configuration of one arm under one seed. Raises InputError naming the field."""
    values = {**from_dotted(arm.changes), "name": name}
    made = ExperimentConfig.model_validate(merged(base.model_dump(mode="json"), values))
    return made.with_seed(seed)
