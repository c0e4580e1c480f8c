"""The order of the episode list, and the key at which a page of it begins.

By id, newest first, or by a column, where episodes without a value are left out. A key is ``id`` or
``value~id``: a page costs the same however deep it lies, and rows that arrive while one reads do
not shift what is shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from intraskill_web.core.parameters import not_one_of
from intraskill_web.episodes.listed import Listed
from intraskill_web.episodes.models import Episode, SearchRow

COLUMNS: dict[str, str | Promise] = {
    "reward": _("reward"),
    "turns": _("turns"),
    "tokens": _("tokens"),
    "protocol_errors": _("protocol errors"),
    "invalid_actions": _("invalid actions"),
}
KEY = re.compile(r"(?:(-?\d+(?:\.\d+)?(?:e-?\d+)?)~)?(\d{1,18})")


@dataclass(frozen=True, slots=True)
class Key:
    """The last row that was seen: its id, and its value where a column decides."""

    pk: int
    value: float | None = None

    @classmethod
    def of(cls, text: str) -> Key | None:
        """A key as addresses carry it; None for anything else."""
        match = KEY.fullmatch(text)
        if match is None:
            return None
        return cls(int(match[2]), float(match[1]) if match[1] else None)

    @staticmethod
    def problems(name: str, text: str) -> list[str]:
        """What is said of a key that is none; ``name`` is that of its parameter."""
        if not text or KEY.fullmatch(text):
            return []
        said = gettext("%(name)s: %(value)s is no place in a list")
        return [said % {"name": name, "value": text[:80]}]

    def __str__(self) -> str:
        return str(self.pk) if self.value is None else f"{self.value!r}~{self.pk}"


@dataclass(frozen=True, slots=True)
class Order:
    """By ``column``, or by id when it is empty; ``ascending`` shows the least first."""

    column: str = ""
    ascending: bool = False

    @classmethod
    def of(cls, text: str) -> Order:
        """``reward`` or ``-reward``; anything else is newest first, and one of the problems."""
        name = text.removeprefix("-")
        return cls(name, not text.startswith("-")) if name in COLUMNS else cls()

    @staticmethod
    def problems(text: str) -> list[str]:
        """What is said of an order that is none."""
        known = [sign + name for name in COLUMNS for sign in ("", "-")]
        return [f"sort: {not_one_of(text, known)}"] if text and text not in known else []

    def __str__(self) -> str:
        return "" if not self.column else self.column if self.ascending else f"-{self.column}"

    def key(self, episode: Episode | Listed) -> Key:
        """The key of a row."""
        if not self.column:
            return Key(episode.pk)
        return Key(episode.pk, float(getattr(episode, self.column)))

    def rows(
        self, found: QuerySet[Episode, Any], key: Key | None, *, back: bool = False
    ) -> QuerySet[Episode, Any]:
        """``found`` in this order behind ``key``; with ``back`` in the other order before it."""
        up = self.ascending != back
        side, sign = ("gt", "") if up else ("lt", "-")
        if not self.column:
            name = _id(found)
            rows = found if key is None else found.filter(**{f"{name}__{side}": key.pk})
            return rows.order_by(f"{sign}{name}")
        found = found.filter(**{f"{self.column}__isnull": False})
        if key is not None and key.value is not None:
            # the first condition is what an index can follow
            found = found.filter(
                Q(**{f"{self.column}__{side}e": key.value}),
                Q(**{f"{self.column}__{side}": key.value}) | Q(**{f"pk__{side}": key.pk}),
            )
        return found.order_by(f"{sign}{self.column}", f"{sign}pk")

    def other(self, column: str) -> Any:
        """What a click on a column's head asks for: most first, then least, then newest."""
        if column != self.column:
            return f"-{column}"
        return "" if self.ascending else column


def _id(found: QuerySet[Episode, Any]) -> str:
    """The id to order by: the index's own where it is asked, so that SQLite reads it backwards.

    By the other, equal one it would take every match and sort.
    """
    asked = SearchRow._meta.db_table in found.query.table_map
    return "search__episode_id" if asked else "pk"
