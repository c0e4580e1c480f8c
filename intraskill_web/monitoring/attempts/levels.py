"""The levels by which a log is read: each shows lines as grave and graver."""

from __future__ import annotations

from django.http import HttpRequest
from django.utils.translation import gettext as _

from intraskill_web.core.parameters import choice

LEVELS = ("", "info", "warn", "error")
SEARCHED = ("warn", "error")  # so rare that the lines are looked for


def level_of(request: HttpRequest) -> str:
    """The level that the address asks for; empty: all. Raises ParameterError."""
    return choice(request.GET, "level", LEVELS[1:])


def level_word(level: str) -> str:
    """The level for people."""
    return {"": _("All"), "info": _("info"), "warn": _("warn"), "error": _("error")}[level]
