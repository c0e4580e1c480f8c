"""Configuration files, YAML or JSON: read, checked, and every mistake named.

Unknown keys are refused. Relative paths are taken from the folder of the file they stand in. Every
mistake becomes an InputError with file, field, value and remedy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from trainer.config_base import Config
from trainer.errors import InputError

ConfigT = TypeVar("ConfigT", bound=Config)

UNHELD = re.compile("[\0\ud800-\udfff]")
MOST_VALUES = 200_000  # in one text, what its aliases repeat counted each time


def yaml_value(text: str) -> Any:
    """The value of a YAML (or JSON) text. Raises YAMLError for what is none.

    Raises ValueError for what is YAML and no settings: a date such as 2026-13-99, brackets or
    aliases without end, a NUL or half of a surrogate pair, which no file or database holds.
    """
    try:
        value = yaml.safe_load(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    seen, waiting = 0, [value]
    while waiting:
        seen += 1
        if seen + len(waiting) > MOST_VALUES:
            raise ValueError(f"more than {MOST_VALUES} values")
        part = waiting.pop()
        if isinstance(part, Mapping):
            waiting += [*part.keys(), *part.values()]
        elif isinstance(part, list | tuple | set):
            waiting += part
        elif isinstance(part, str) and UNHELD.search(part):
            raise ValueError(f"{part[:80]!r} has a character that no file or database holds")
    return value


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML (or JSON) file. Raises InputError that names the file."""
    try:
        value = yaml_value(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError) as error:
        raise InputError("no such configuration file", file=path) from error
    except (ValueError, yaml.YAMLError) as error:
        raise InputError(f"not valid YAML: {error}", file=path) from error
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path) from error
    if not isinstance(value, dict):
        raise InputError("a configuration is a mapping of keys to values", file=path)
    return value


def load_config(path: Path, model: type[ConfigT]) -> ConfigT:
    """Read and check a configuration. Raises InputError naming file, field, value and remedy."""
    return parse_config(read_yaml(path), model, file=path)


def is_launch(document: Mapping[str, Any]) -> bool:
    """Whether a configuration is a launch file of slime, and not an experiment that names one."""
    return document.get("engine") == "slime" and "start" not in document


def parse_config(value: dict[str, Any], model: type[ConfigT], *, file: Path) -> ConfigT:
    """Check a configuration value; ``file`` anchors relative paths and is named in errors."""
    try:
        return model.model_validate(value, context={"base": file.parent.resolve()})
    except ValidationError as error:
        first, field = first_mistake(error)
        # Keys that do not fit each other say so themselves; the section would be a page of text.
        tells = first["type"] != "missing" and not isinstance(first["input"], dict)
        raise InputError(
            first["msg"].removeprefix("Value error, "),
            file=file,
            field=field,
            value=first["input"] if tells else None,
            remedy=_remedy(first["type"], model, first["loc"]),
        ) from error


def first_mistake(error: ValidationError) -> tuple[ErrorDetails, str | None]:
    """The first mistake that a check found, and the key it is in; None for the whole value."""
    first = error.errors(include_url=False)[0]
    return first, ".".join(map(str, first["loc"])) or None


def _remedy(kind: str, model: type[Config], loc: tuple[int | str, ...]) -> str:
    if kind == "missing":
        return "Add this key"
    if kind == "extra_forbidden":
        return f"Remove it; keys known here: {', '.join(_known_keys(model, loc[:-1]))}"
    return "Correct the value"


def _known_keys(model: type[Config], loc: tuple[int | str, ...]) -> list[str]:
    for part in loc:
        inner = model.model_fields[str(part)].annotation if isinstance(part, str) else None
        if not (isinstance(inner, type) and issubclass(inner, Config)):
            return []
        model = inner
    return sorted(model.model_fields)


def laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """``below`` with the values of ``above``; what is a mapping in both is merged key by key."""
    made = dict(below)
    for key, value in above.items():
        under = made.get(key)
        if isinstance(under, Mapping) and isinstance(value, Mapping):
            made[key] = laid_over(under, value)
        else:
            made[key] = value
    return made
