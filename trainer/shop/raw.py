"""A record of the published schema before it is trusted: checked access that names every fault."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeGuard

from trainer.errors import InputError

_SHOWN = 120


def finite_number(value: object) -> TypeGuard[float]:
    """Whether ``value`` is a number that a float can hold; JSON's whole numbers have no end."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and abs(value) <= sys.float_info.max  # type: ignore[arg-type]


class RawRecord:
    """A record with its place, so that every complaint names file, record and field."""

    def __init__(self, raw: Mapping[str, Any], position: int, file: Path | None, path: str = ""):
        self.raw = raw
        self.position = position
        self._file = file
        self._path = path or f"[{position}]"

    def error(self, name: str, message: str, value: object) -> InputError:
        """About the field ``name``; ``value`` is what was found, None when there is nothing."""
        return InputError(
            message,
            file=self._file,
            field=f"{self._path}.{name}",
            value=None if value is None else _short(value),
            remedy="Correct or remove the record and load the file again",
        )

    def text(self, name: str) -> str:
        value = self.raw.get(name)
        if not isinstance(value, str) or not value.strip():
            raise self.error(name, "a text is needed", value)
        return value

    def optional_text(self, name: str) -> str:
        value = self.raw.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.error(name, "must be a text or absent", value)
        return value

    def items(self, name: str) -> list[Any]:
        value = self.raw.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.error(name, "must be a list", value)
        return value

    def mapping(self, name: str) -> Mapping[str, Any]:
        """An object; empty when the record has none."""
        value = self.raw.get(name) or {}
        if not isinstance(value, Mapping):
            raise self.error(name, "must be an object", value)
        return value

    def texts(self, name: str) -> Iterator[str]:
        for value in self.items(name):
            if not isinstance(value, str):
                raise self.error(name, "must be a list of texts", value)
            yield sys.intern(value)

    def inner(self, raw: object, path: str) -> RawRecord:
        if not isinstance(raw, Mapping):
            raise self.error(path, "must be an object", raw)
        return RawRecord(raw, self.position, self._file, f"{self._path}.{path}")

    def axes(self) -> Iterator[tuple[str, list[RawRecord]]]:
        """Axes with their entries; an axis whose list is null is dropped."""
        for axis, entries in self.mapping("customization_options").items():
            if entries is None:
                continue
            if not isinstance(entries, list):
                raise self.error(f"customization_options.{axis}", "must be a list", entries)
            path = f"customization_options.{axis}"
            yield axis, [self.inner(entry, f"{path}[{i}]") for i, entry in enumerate(entries)]

    def value(self) -> str:
        """The text of an option entry, which may be blank."""
        if "value" not in self.raw:
            raise self.error("value", "an option needs a value", None)
        return str(self.raw["value"])

    def price(self) -> float | None:
        value = self.raw.get("price")
        return value if finite_number(value) and value >= 0 else None


def _short(value: object) -> object:
    """A value that fits into a message."""
    text = repr(value)
    return value if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
