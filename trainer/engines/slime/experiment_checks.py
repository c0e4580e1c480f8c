"""The checks of an experiment on slime: its start model, and the refusals of a round's launch."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from trainer.config_files import load_config
from trainer.engines.slime.checks import Check
from trainer.engines.slime.config import SlimeConfig
from trainer.engines.slime.exports import EXPORT, require_weights
from trainer.engines.slime.refusals import launch_checks
from trainer.engines.slime.serving import SlimeSettings
from trainer.engines.slime.variables import variables
from trainer.errors import InputError
from trainer.preflight.inputs import Inputs, NamedCheck, need_world


def slime_checks(checkpoint: Path, settings: SlimeSettings) -> list[NamedCheck]:
    """What a round reads beside world, bank and splits. A damaged launch file is one finding."""
    model: NamedCheck = ("checkpoint", lambda inputs: _model(inputs, checkpoint))
    try:
        found = launch_checks(load_config(settings.launch, SlimeConfig), os.environ)
    except InputError as error:
        damaged = error

        def unreadable(_inputs: Inputs) -> str:
            raise damaged

        return [model, ("launch", unreadable)]
    return [model, *((check.name, _told(check)) for check in found)]


def _told(check: Check) -> Callable[[Inputs], str]:
    def told(_inputs: Inputs) -> str:
        if check.state == "failed":
            raise InputError(check.detail, field=check.name, remedy=_by_field(check.remedy))
        return check.detail

    return told


def _by_field(remedy: str | None) -> str:
    """With the launch file's fields for variables, which a frozen launch does not read."""
    fields = {item.name: item.field for item in variables()}
    return re.sub(r"\b[A-Z][A-Z_]+\b", lambda word: fields.get(word[0], word[0]), remedy or "")


def _model(inputs: Inputs, checkpoint: Path) -> str:
    if need_world(inputs).language is not None:
        raise InputError(
            "a language model calls functions, and this world speaks words",
            field="world.profile",
            remedy="Choose another profile",
        )
    linked = checkpoint / EXPORT
    weights = linked if linked.exists() else checkpoint
    require_weights(weights)
    return str(weights.resolve())
