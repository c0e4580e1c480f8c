"""The environment variables of a slime launch: one table, read off the typed configuration.

Specification: training.md §6.1, §6.4. A variable that is set and not empty overrides the file; what
was overridden is reported, so that a run can be reproduced from its plan alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.config import Config
from trainer.config_files import parse_config, read_yaml
from trainer.engines.slime.config import SlimeConfig


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable and the field (``section.name``) it overrides."""

    name: str
    field: str
    default: Any
    required: bool
    is_path: bool
    meaning: str


def variables() -> tuple[Variable, ...]:
    """Every variable of the launch, in the order of the configuration."""
    return tuple(_walk(SlimeConfig, ""))


def _walk(model: type[Config], prefix: str) -> Iterator[Variable]:
    for name, info in model.model_fields.items():
        if isinstance(info.annotation, type) and issubclass(info.annotation, Config):
            yield from _walk(info.annotation, f"{prefix}{name}.")
            continue
        extra = info.json_schema_extra
        if isinstance(extra, dict) and isinstance(extra.get("env"), str):
            yield Variable(
                name=str(extra["env"]),
                field=f"{prefix}{name}",
                default=None if info.is_required() else info.default,
                required=info.is_required(),
                is_path="Path" in str(info.annotation),
                meaning=info.description or "",
            )


def with_environment(
    document: Mapping[str, Any], environ: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The document with the variables of ``environ`` laid over it, and which ones were used."""
    merged = {
        key: dict(value) if isinstance(value, dict) else value for key, value in document.items()
    }
    used: dict[str, str] = {}
    for item in variables():
        value = environ.get(item.name, "")
        if not value:
            continue
        section, _, name = item.field.partition(".")
        merged.setdefault(section, {})
        if isinstance(merged[section], dict):
            # Like a shell's: relative to where the launch was typed, not to the file.
            merged[section][name] = str(Path(value).absolute()) if item.is_path else value
            used[item.name] = value
    return merged, used


def load_slime_config(
    path: Path, environ: Mapping[str, str] | None = None
) -> tuple[SlimeConfig, dict[str, str]]:
    """Read a launch configuration; raises InputError naming file, field, value and remedy.

    Returns the configuration and the environment variables that overrode the file.
    """
    document, used = with_environment(read_yaml(path), environ or {})
    return parse_config(document, SlimeConfig, file=path), used
