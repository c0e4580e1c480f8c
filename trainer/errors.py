"""Errors that people can act on.

Every error a user can cause names the file, the field, the value found and the remedy, so that one
line is enough to mend it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class InputError(ValueError):
    """Input that cannot be used: the caller's mistake, never ours. Exit code 2."""

    def __init__(
        self,
        message: str,
        *,
        file: str | Path | None = None,
        field: str | None = None,
        value: object = None,
        remedy: str | None = None,
    ) -> None:
        self.file = None if file is None else str(file)
        self.field = field
        self.value = value
        self.remedy = remedy
        self.reason = message
        where = ": ".join(part for part in (self.file, self.field) if part)
        text = f"{where}: {message}" if where else message
        if value is not None:
            text += f" (found {value!r})"
        if remedy:
            text += f". {remedy}"
        super().__init__(text)


@contextmanager
def typed_as(**flags: str) -> Iterator[None]:
    """Name the flag beside the field, ``--rho-min (rho_min)``, where a person typed the value.

    ``flags``: the flag of each field. What stands in a file keeps its name.
    """
    try:
        yield
    except InputError as error:
        flag = flags.get(error.field or "")
        if flag is None or error.file is not None:
            raise
        raise InputError(
            error.reason, field=f"{flag} ({error.field})", value=error.value, remedy=error.remedy
        ) from error


class IncompleteError(RuntimeError):
    """Work that ran and may not be used because something is missing. Exit code 1."""


class StopRequested(Exception):
    """The operator asked to stop; what is published is whole and resumable. Exit code 143."""
