"""The kinds of configuration, and what their models say about a document.

A launch is an experiment's configuration without its name; its gate, analyst and curriculum are
numbers of revisions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import yaml
from django.utils.translation import gettext as _
from pydantic import ValidationError, create_model

from intraskill_web.configs.schema import Group, groups
from trainer.analyst.settings import AnalystSettings
from trainer.config import Config, Count, CurriculumSettings
from trainer.config_files import yaml_value
from trainer.errors import InputError
from trainer.experiment_config import ExperimentConfig, GateSettings

PARTS = ("gate", "analyst", "curriculum")
LARGEST = 64 * 1024  # bytes of YAML


def _launch_model() -> type[Config]:
    fields: dict[str, Any] = dict.fromkeys(PARTS, (Count, ...))
    for name, info in ExperimentConfig.model_fields.items():
        if name not in ("name", *PARTS):
            fields[name] = (info.annotation, info)
    text = "Everything that an experiment starts with; gate, analyst and curriculum by revision."
    return create_model("LaunchConfig", __base__=Config, __doc__=text, **fields)


MODELS: Mapping[str, type[Config]] = {
    "gate": GateSettings,
    "analyst": AnalystSettings,
    "curriculum": CurriculumSettings,
    "launch": _launch_model(),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong at ``path`` (empty: the whole); ``line`` of the YAML, from 1, where known."""

    path: str
    message: str
    line: int | None = None


@lru_cache
def groups_of(kind: str) -> list[Group]:
    """The form of a kind."""
    return groups(MODELS[kind].model_json_schema())


def check(kind: str, document: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """The document with all defaults, or the problems. Types, ranges and rules across fields."""
    try:
        return MODELS[kind].model_validate(document).model_dump(mode="json"), []
    except ValidationError as error:
        return {}, [
            Problem(".".join(map(str, e["loc"])), worded(e))
            for e in error.errors(include_url=False)
        ]


def read_text(text: str) -> dict[str, Any]:
    """The mapping in a YAML text. Raises InputError that names the line."""
    if len(text.encode(errors="replace")) > LARGEST:
        raise InputError(_("the text is larger than 64 KiB"), field="YAML")
    try:
        value = yaml_value(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = _("line %(n)d") % {"n": mark.line + 1} if mark else "YAML"
        said = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise InputError(f"{where}: {said}", field="YAML") from error
    except ValueError as error:
        raise InputError(f"YAML: {error}", field="YAML") from error
    if not isinstance(value, dict):
        raise InputError(_("a configuration is a mapping of keys to values"), field="YAML")
    return value


def with_lines(text: str, problems: Sequence[Problem]) -> list[Problem]:
    """The problems with the lines of the YAML they are about."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    return [Problem(p.path, p.message, _line(root, p.path)) for p in problems]


def write_text(document: Mapping[str, Any]) -> str:
    """A document as YAML, keys in the order of the model."""
    return yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True)


def _line(node: Any, path: str) -> int | None:
    """Of the key, or of the innermost object on the way to it."""
    line = None
    for key in path.split(".") if path else []:
        if not isinstance(node, yaml.MappingNode):
            break
        for name, value in node.value:
            if name.value == key:
                line, node = name.start_mark.line + 1, value
                break
        else:
            break
    return line


def worded(error: Mapping[str, Any]) -> str:
    """A pydantic error in the reader's language; rules of ours keep their own words."""
    context = error.get("ctx", {})
    limit = {k: context[k] for k in ("ge", "gt", "le", "lt") if k in context}
    kind = str(error["type"])
    if limit:
        sign, value = next(iter(limit.items()))
        return _("must be %(sign)s %(value)s") % {"sign": SIGNS[sign], "value": value}
    said: dict[str, str] = {
        "missing": _("is missing"),
        "extra_forbidden": _("is not a key known here"),
        "int_parsing": _("must be a whole number"),
        "int_from_float": _("must be a whole number"),
        "int_type": _("must be a whole number"),
        "float_parsing": _("must be a number"),
        "float_type": _("must be a number"),
        "finite_number": _("must be a finite number"),
        "bool_parsing": _("must be true or false"),
        "string_type": _("must be text"),
        "dict_type": _("must be a mapping"),
        "model_type": _("must be a mapping"),
    }
    if kind in said:
        return said[kind]
    if kind == "literal_error":
        return _("must be %(choices)s") % {"choices": context.get("expected", "")}
    return str(error["msg"]).removeprefix("Value error, ")


SIGNS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
