"""What the pages of ``rework_views`` read from a request and show of it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from intraskill_web.experiments.config_changes import Changes, editable, edited, rows, settings_in
from trainer.canonical import fingerprint
from trainer.errors import InputError

Config = Mapping[str, Any]


@dataclass(slots=True)
class Draft:
    """An edited configuration: its text, what it changes, and what is wrong with it.

    Whoever sends it must have seen the very changes it makes: ``seen`` is their hash.
    """

    text: str
    changes: Changes = field(default_factory=dict)
    error: str = ""
    error_field: str = ""
    is_seen: bool = False

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """Key, before, after."""
        return list(rows(self.changes))

    @property
    def seen(self) -> str:
        """The hash of the changes."""
        return fingerprint(self.changes)

    def data(self) -> dict[str, Any]:
        """For the JSON twin."""
        return {"config": self.text, "changes": self.changes, "error": self.error or None,
                "seen": self.seen}  # fmt: skip


def draft(
    config: Config, post: Mapping[str, str], change: Callable[[dict[str, Any]], Changes]
) -> Draft:
    """The draft that was sent, or an untouched one; ``change`` says what it would change."""
    made = Draft(post.get("config") or editable(config))
    try:
        made.changes = change(edited(config, made.text))
    except InputError as error:
        made.error = error.reason + (f". {error.remedy}" if error.remedy else "")
        made.error_field = str(error.field or "")
    made.is_seen = not made.error and post.get("seen") == made.seen
    return made


def values_of(post: Mapping[str, str]) -> dict[str, Any]:
    """The values that a program sends: ``config`` as YAML or JSON. Raises InputError."""
    return settings_in(post.get("config", ""))
