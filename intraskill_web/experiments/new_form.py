"""A new experiment as somebody orders it: what it begins from, and what it does otherwise.

It takes world, engine and starting files from its base; everything else may be edited.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from django.utils.translation import gettext as _

from intraskill_web.core.parameters import whole
from intraskill_web.experiments.config_changes import SECTIONS, Changes, differences, merged, rows
from intraskill_web.experiments.estimate import Estimate, estimate
from intraskill_web.experiments.models import Experiment
from intraskill_web.experiments.rework_forms import values_of
from intraskill_web.experiments.sweeps import base_config
from trainer.canonical import fingerprint
from trainer.errors import InputError
from trainer.experiment_config import ExperimentConfig

FIRST_BASE = "mini/demo"
EDITED = ("title", "rounds", *SECTIONS)
NAME = re.compile(r"[A-Za-z0-9_\-]{1,80}")


@dataclass(slots=True)
class Proposal:
    """An experiment that is not made yet. Whoever makes it must have seen what it changes."""

    base_name: str
    name: str = ""
    seed_text: str = ""
    text: str = ""
    config: ExperimentConfig | None = None
    changes: Changes = field(default_factory=dict)
    estimate: Estimate | None = None
    error: InputError | None = None
    is_seen: bool = False

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """Key, value of the base, own value."""
        return list(rows(self.changes))

    @property
    def seen(self) -> str:
        """The hash of what would be made."""
        return fingerprint(self.config.model_dump(mode="json")) if self.config else ""

    def data(self) -> dict[str, Any]:
        """For the JSON twin."""
        return {
            "base": self.base_name, "name": self.name, "seed": self.seed_text,
            "config": self.text, "changes": self.changes,
            "estimate": self.estimate.data() if self.estimate else None,
            "error": str(self.error) if self.error else None, "seen": self.seen,
        }  # fmt: skip


def blank(base_name: str) -> Proposal:
    """The form as it opens, filled from a base. Raises InputError when there is none."""
    base = base_config(base_name)
    return Proposal(base_name, "", str(base.seed), editable(base))


def proposal(post: Mapping[str, str]) -> Proposal:
    """What was sent, looked through. What the text leaves out stays as the base has it."""
    made = Proposal(
        post.get("base", FIRST_BASE),
        post.get("name", "").strip(),
        post.get("seed", "").strip(),
        post.get("config", ""),
    )
    try:
        base = base_config(made.base_name)
        made.text = made.text or editable(base)
        made.config = _config(base, made)
        made.changes = differences(*map(_values, (base, made.config)))
        made.estimate = estimate([made.config])
    except InputError as refusal:
        made.error = refusal
    made.is_seen = made.error is None and post.get("seen") == made.seen
    return made


def editable(config: ExperimentConfig) -> str:
    """What a new experiment may do otherwise, as YAML."""
    values = config.model_dump(mode="json")
    part = {name: values[name] for name in EDITED}
    return yaml.safe_dump(part, sort_keys=False, allow_unicode=True)


def _config(base: ExperimentConfig, made: Proposal) -> ExperimentConfig:
    if not NAME.fullmatch(made.name):
        raise InputError(_("Letters, digits, - and _, at most 80"), field="name", value=made.name)
    if Experiment.objects.filter(name=made.name).exists():
        raise InputError(
            _("an experiment of this name exists"),
            field="name",
            value=made.name,
            remedy=_("Choose another name"),
        )
    values = values_of({"config": made.text})
    for key in values:
        if key not in EDITED:
            raise InputError(
                _("is none of the settings that can be edited here"),
                field=str(key),
                remedy=_("Remove it; known here: %(keys)s") % {"keys": ", ".join(EDITED)},
            )
    before = base.model_dump(mode="json")
    config = ExperimentConfig.model_validate(merged(before, {**values, "name": made.name}))
    if made.seed_text in ("", str(base.seed)):
        return config
    return config.with_seed(whole({"seed": made.seed_text}, "seed"))


def _values(config: ExperimentConfig) -> dict[str, Any]:
    return config.model_dump(mode="json", exclude={"name"})
