"""From a JSON schema (as pydantic writes it) to the fields of a form, and from its texts back to a
document. Pure.

A path is dotted (``standard.adopt_alpha``). Nested objects become groups; an object that may be
null has a switch, which is a field of the object's own path.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Schema = Mapping[str, Any]
Kind = Literal["integer", "number", "boolean", "choice", "text", "json"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """One value. ``open_low`` and ``open_high``: the limit itself is not allowed."""

    path: str
    kind: Kind
    default: Any = None
    nullable: bool = False
    low: float | None = None
    high: float | None = None
    open_low: bool = False
    open_high: bool = False
    choices: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]

    @property
    def range(self) -> str:
        """The allowed values in signs: ``0 < x ≤ 0.5``; empty without limits."""
        if self.low is None and self.high is None:
            return ""
        left = "" if self.low is None else f"{self.low:g} {'<' if self.open_low else '≤'} "
        right = "" if self.high is None else f" {'<' if self.open_high else '≤'} {self.high:g}"
        return f"{left}x{right}"


@dataclass(frozen=True, slots=True)
class Group:
    """The values of one object; ``text`` is what its documentation says."""

    path: str
    text: str
    optional: bool = False
    leaves: list[Leaf] = field(default_factory=list)


def groups(schema: Schema) -> list[Group]:
    """All groups in the order of the schema, the outermost first."""
    return list(_groups(schema, schema.get("$defs", {}), "", {}, optional=False))


def _groups(
    schema: Schema, defs: Schema, path: str, given: Mapping[str, Any], *, optional: bool
) -> Iterator[Group]:
    own = Group(path, str(schema.get("description", "")), optional)
    inner: list[tuple[Schema, str, Mapping[str, Any], bool]] = []
    for key, item in schema.get("properties", {}).items():
        where = f"{path}.{key}" if path else key
        default = given.get(key, item.get("default"))
        options = [o for o in item.get("anyOf", [item]) if o.get("type") != "null"]
        nullable = len(options) < len(item.get("anyOf", [item]))
        target = options[0]
        if "$ref" in target:
            target = defs[target["$ref"].rpartition("/")[2]]
        if target.get("properties"):
            inner.append((target, where, default or {}, nullable))
        else:
            own.leaves.append(_leaf(where, target, default, nullable))
    yield own
    for target, where, default, nullable in inner:
        yield from _groups(target, defs, where, default, optional=nullable)


def _leaf(path: str, item: Schema, default: Any, nullable: bool) -> Leaf:
    choices = item.get("enum") or ([item["const"]] if "const" in item else [])
    kind: Kind = "choice" if choices else KINDS.get(item.get("type", ""), "json")
    low, high = item.get("minimum"), item.get("maximum")
    return Leaf(
        path=path,
        kind=kind,
        default=default,
        nullable=nullable,
        low=item.get("exclusiveMinimum", low),
        high=item.get("exclusiveMaximum", high),
        open_low=low is None,
        open_high=high is None,
        choices=tuple(map(str, choices)),
    )


KINDS: Mapping[str, Kind] = {
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "string": "text",
}


def fill(found: Sequence[Group], document: Mapping[str, Any]) -> dict[str, Any]:
    """What a form shows for ``document``; missing values are their defaults."""
    made: dict[str, Any] = {}
    for group in found:
        if group.optional:
            made[group.path] = bool(at(document, group.path))
        for leaf in group.leaves:
            value = at(document, leaf.path, leaf.default)
            made[leaf.path] = value if leaf.kind == "boolean" else _shown(value, leaf)
    return made


def _shown(value: Any, leaf: Leaf) -> str:
    if value is None:
        return ""
    if leaf.kind == "json":
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def assemble(found: Sequence[Group], texts: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a form's texts, to be checked by its model.

    What cannot be read (broken JSON) stays text, so that the model names it. An object that is
    switched off is null, and so is everything in it.
    """
    document: dict[str, Any] = {}
    off = [g.path for g in found if g.optional and not texts.get(g.path)]
    for group in found:
        if any(_within(group.path, path) for path in off):
            if group.path in off and not any(
                _within(group.path, p) for p in off if p != group.path
            ):
                _put(document, group.path, None)
            continue
        for leaf in group.leaves:
            _put(document, leaf.path, _value(texts.get(leaf.path), leaf))
    return document


def _value(text: Any, leaf: Leaf) -> Any:
    if leaf.kind == "boolean":
        return bool(text)
    text = "" if text is None else str(text)
    if text == "" and leaf.nullable:
        return None
    if leaf.kind == "json":
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def at(document: Any, path: str, default: Any = None) -> Any:
    """The value at a dotted path, or ``default``."""
    for key in path.split("."):
        if not isinstance(document, Mapping) or key not in document:
            return default
        document = document[key]
    return document


def flat(document: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """All values by dotted path."""
    made: dict[str, Any] = {}
    for key, value in document.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            made |= flat(value, f"{path}.")
        else:
            made[path] = value
    return made


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """(path, before, after) of every value that differs; absent is None."""
    a, b = flat(old), flat(new)
    return [(p, a.get(p), b.get(p)) for p in dict.fromkeys([*b, *a]) if a.get(p) != b.get(p)]


def _within(path: str, outer: str) -> bool:
    return path == outer or path.startswith(f"{outer}.")


def _put(document: dict[str, Any], path: str, value: Any) -> None:
    *outer, last = path.split(".")
    for key in outer:
        document = document.setdefault(key, {})
    document[last] = value
