"""Reading settings from the environment: strict, so that a slip is an error, not a default.

Every helper raises ImproperlyConfigured that names the variable, the value found and what is
allowed. A secret may also be given as a file: ``NAME_FILE`` holds its path.
"""

from __future__ import annotations

import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def envstr(name: str, default: str) -> str:
    """The variable, or ``default`` when it is unset or empty."""
    return os.environ.get(name) or default


def envbool(name: str, default: bool) -> bool:
    """``True`` or ``False``, nothing else."""
    text = os.environ.get(name)
    if not text:
        return default
    if text not in ("True", "False"):
        raise ImproperlyConfigured(f"{name} must be True or False (found {text!r})")
    return text == "True"


def envint(name: str, default: int, *, least: int = 0, most: int | None = None) -> int:
    """A whole number from ``least`` to ``most``."""
    text = os.environ.get(name)
    if not text:
        return default
    allowed = f"{least} or more" if most is None else f"{least} to {most}"
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least or (most is not None and number > most):
        raise ImproperlyConfigured(f"{name} must be a whole number, {allowed} (found {text!r})")
    return number


def envlist(name: str, default: list[str]) -> list[str]:
    """Comma-separated words."""
    text = os.environ.get(name)
    if not text:
        return default
    return [word.strip() for word in text.split(",") if word.strip()]


def envsecret(name: str) -> str | None:
    """``NAME``, else the contents of the file that ``NAME_FILE`` names, else None."""
    if value := os.environ.get(name):
        return value
    if path := os.environ.get(f"{name}_FILE"):
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ImproperlyConfigured(f"{name}_FILE cannot be read: {error}") from error
    return None
