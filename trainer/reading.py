"""Values of a parsed document, each with the place where it stands.

A document that somebody else wrote is read through these: a value of another shape than expected is
an InputError that names file, field and value, never a fault of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.errors import InputError
from trainer.files import read_json

LARGEST = 1e100  # the square of anything larger may overflow


@dataclass(frozen=True, slots=True)
class Node:
    """A value and where it stands: ``name`` is its path in the document, such as ``jobs[3].seed``.

    Every method raises InputError when the value is of another kind than the method is for.
    """

    value: Any
    file: Path | None = None
    name: str = ""

    def error(self, message: str, remedy: str | None = None) -> InputError:
        """An error about this value, to be raised."""
        shown = None if self.value is None else _short(self.value)
        return InputError(message, file=self.file, field=self.name, value=shown, remedy=remedy)

    def __getitem__(self, key: str) -> Node:
        """The member ``key`` of an object."""
        name = f"{self.name}.{key}" if self.name else key
        if key not in self.mapping():
            raise InputError("is missing", file=self.file, field=name)
        return Node(self.value[key], self.file, name)

    def get(self, key: str) -> Node:
        """The member ``key`` of an object; None where it is absent."""
        name = f"{self.name}.{key}" if self.name else key
        return Node(self.mapping().get(key), self.file, name)

    def __iter__(self) -> Iterator[Node]:
        """The items of a list."""
        for index, item in enumerate(self.items()):
            yield Node(item, self.file, f"{self.name}[{index}]")

    def mapping(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            raise self.error("must be an object")
        return self.value

    def items(self) -> list[Any]:
        if not isinstance(self.value, list):
            raise self.error("must be a list")
        return self.value

    def string(self) -> str:
        if not isinstance(self.value, str):
            raise self.error("must be a string")
        return self.value

    def text(self) -> str:
        """A string that is not blank."""
        if not isinstance(self.value, str) or not self.value.strip():
            raise self.error("must be a non-blank string")
        return self.value

    def integer(self, least: int | None = None, most: int | None = None) -> int:
        if type(self.value) is not int:
            raise self.error("must be an integer")
        if least is not None and self.value < least:
            raise self.error(f"must be at least {least}")
        if most is not None and self.value > most:
            raise self.error(f"must be at most {most}")
        return self.value

    def number(self) -> float:
        """A finite number that can be calculated with; booleans are none."""
        if type(self.value) not in (int, float) or not abs(self.value) <= LARGEST:
            raise self.error("must be a finite number")
        return float(self.value)

    def positive(self) -> float:
        """A finite number above 0."""
        number = self.number()
        if number <= 0:
            raise self.error("must be above 0")
        return number

    def choice(self, *allowed: object) -> Any:
        """One of a few values."""
        if not any(self.value == each and type(self.value) is type(each) for each in allowed):
            raise self.error("must be one of " + ", ".join(map(repr, allowed)))
        return self.value


def read_node(path: Path) -> Node:
    """The root of a JSON file. Raises InputError when it is missing or not JSON."""
    return Node(read_json(path), path)


def _short(value: object, most: int = 120) -> object:
    """The value as errors show it: whole texts would hide the message."""
    text = repr(value)
    return value if len(text) <= most else text[: most - 1] + "…"
