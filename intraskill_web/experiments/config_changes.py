"""What may be changed in a round's configuration, from which stage on, and what differs.

Pure. A configuration is the JSON of an ``ExperimentConfig``; a change is a dotted key with its
value before and after. Most of it belongs to the whole experiment: only what the rest of a round
still reads may be changed for it, or the round would not be what its files say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml
from pydantic import ValidationError

from intraskill_web.experiments.states import STAGE_ORDER
from trainer.config_files import first_mistake, laid_over, yaml_value
from trainer.engines.slime.experiment import NOT_ON_SLIME
from trainer.errors import InputError
from trainer.experiment_config import ExperimentConfig

Config = Mapping[str, Any]
Changes = dict[str, list[Any]]  # dotted key → [before, after]

# dotted prefix → the first stage that reads it; the longest prefix counts
FIRST_READ: dict[str, str] = {
    "temperature": "freeze",
    "max_new_tokens": "freeze",
    "threads": "freeze",
    "curriculum": "freeze",
    "train.rollout": "train",
    "train.optimiser": "train",
    "analyst": "analyse",
    "analyst.watch": "train",
    "evaluation.batch_size": "freeze",
    "evaluation.full_tasks": "validate",
    "evaluation.bare_tasks": "validate",
    "evaluation.test_tasks": "select",
    "gate": "gate",
}
SECTIONS = ("temperature", "max_new_tokens", "threads", "curriculum", "train", "analyst",
            "evaluation", "gate")  # fmt: skip


def differences(before: Config, after: Config) -> Changes:
    """Every dotted key whose value differs, in the order of ``before``."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    keys = [*old, *(key for key in new if key not in old)]
    return {key: [old.get(key), new.get(key)] for key in keys if old.get(key) != new.get(key)}


def composed(several: Iterable[Changes]) -> Changes:
    """One change for several that followed each other; what came back to its value is none."""
    made: Changes = {}
    for changes in several:
        for key, (before, after) in changes.items():
            made[key] = [made[key][0] if key in made else before, after]
    return {key: value for key, value in made.items() if value[0] != value[1]}


def _leaves(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{prefix}.{key}" if prefix else str(key))
    else:
        yield prefix, value


def first_reader(key: str, config: Config) -> str | None:
    """The first stage that reads ``key``; None for what is one for all rounds."""
    if key == "analyst" or key.startswith("analyst."):
        watched = bool(config.get("analyst", {}).get("watch"))
        return "train" if watched else _longest(key)
    return _longest(key)


def _longest(key: str) -> str | None:
    fitting = [p for p in FIRST_READ if key == p or key.startswith(f"{p}.")]
    return FIRST_READ[max(fitting, key=len)] if fitting else None


def refuse(changes: Changes, config: Config, *, stage: str) -> None:
    """Raises InputError for a change that a round about to run ``stage`` can no longer take."""
    position = STAGE_ORDER.index(stage)
    for key, (_before, after) in changes.items():
        if config.get("engine") == "slime" and key in NOT_ON_SLIME:
            raise InputError(
                "slime reads no such setting",
                field=key,
                value=after,
                remedy="Start another experiment with another launch file",
            )
        reader = first_reader(key, config)
        if reader is None:
            raise InputError(
                "is the same in all rounds of an experiment",
                field=key,
                value=after,
                remedy="Start another experiment with it",
            )
        if STAGE_ORDER.index(reader) < position:
            raise InputError(
                f"was already read by the stage {reader}, which is done",
                field=key,
                value=after,
                remedy="Change it in the next round, or start another experiment",
            )


def affects(changes: Changes, config: Config, stage: str) -> bool:
    """Whether ``stage`` is the first to read one of the changed values."""
    return any(first_reader(key, config) == stage for key in changes)


def editable(config: Config) -> str:
    """The part of a configuration that a round may change, as YAML to edit."""
    part = {name: config[name] for name in SECTIONS if name in config}
    part["train"] = {k: v for k, v in part.get("train", {}).items() if k != "steps"}
    return yaml.safe_dump(part, sort_keys=False, allow_unicode=True)


def edited(config: Config, text: str) -> dict[str, Any]:
    """``config`` with the values of an edited text. Raises InputError naming the field."""
    return merged(config, settings_in(text))


def settings_in(text: str) -> dict[str, Any]:
    """The settings in a text that was sent, YAML or JSON. Raises InputError."""
    try:
        value = yaml_value(text) or {}
    except (ValueError, yaml.YAMLError) as error:
        raise InputError(
            f"not valid YAML: {error}", field="config", remedy="Correct the text"
        ) from error
    if not isinstance(value, dict):
        raise InputError("a configuration is a mapping of keys to values", field="config")
    return value


def merged(config: Config, values: Config) -> dict[str, Any]:
    """``config`` with ``values`` over it, checked as a whole. Raises InputError."""
    try:
        checked = ExperimentConfig.model_validate(laid_over(config, values))
    except ValidationError as error:
        first, field = first_mistake(error)
        raise InputError(
            first["msg"].removeprefix("Value error, "),
            field=field,
            value=None if first["type"] == "missing" else first["input"],
            remedy="Correct the value",
        ) from error
    return checked.model_dump(mode="json")


def from_dotted(values: Mapping[str, Any]) -> dict[str, Any]:
    """``{"a.b": 1}`` → ``{"a": {"b": 1}}``."""
    made: dict[str, Any] = {}
    for key, value in values.items():
        *path, last = key.split(".")
        place = made
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    return made


def rows(changes: Changes) -> Sequence[tuple[str, str, str]]:
    """Key, before and after as people read them."""
    return [(key, _shown(before), _shown(after)) for key, (before, after) in changes.items()]


def _shown(value: Any) -> str:
    return (
        "—"
        if value is None
        else yaml.safe_dump(value, default_flow_style=True)[:-1].removesuffix("\n...")
    )
