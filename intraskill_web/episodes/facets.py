"""The controls above the episode list, and the counted values beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import urlencode

from django.utils.safestring import SafeString, mark_safe

from intraskill_web.episodes.filters import EpisodeFilter
from intraskill_web.episodes.parameters import PARAMETERS

SELECTS = ("purpose", "treatment", "outcome", "split", "triage", "termination", "admitted")
TEXTS = (
    "round", "step", "group", "task", "chunk", "without", "persona", "category", "checkpoint",
    "reward", "turns", "tokens", "errors", "invalid",
)  # fmt: skip
HINTS = {
    "reward": "0..0.5", "turns": "4..8", "tokens": "100..", "errors": "1..", "invalid": "1..",
    "persona": "brand=tarn",
}  # fmt: skip
SHOWN = 6  # values of one facet


@dataclass(frozen=True, slots=True)
class Facet:
    """One control: a select with options (HTML), or a text field without."""

    key: str
    name: str
    value: str
    options: SafeString
    hint: str = ""


@dataclass(frozen=True, slots=True)
class FacetValue:
    """A value of a facet, how many episodes have it, and the query that asks for them."""

    word: str
    count: int
    address: str


@dataclass(frozen=True, slots=True)
class FacetBar:
    """The values of one facet among what was found, most frequent first."""

    name: str
    values: list[FacetValue]
    more: int


def fields(filter_: EpisodeFilter, experiments: Sequence[str]) -> list[Facet]:
    """The controls in their fixed order."""
    value = filter_.values.get("experiment", "")
    names = [value, *experiments] if value and value not in experiments else experiments
    made = [_field(filter_, "experiment", [(name, name) for name in names])]
    for key in SELECTS:
        words: Mapping[str, Any] = PARAMETERS[key].words or {}
        made.append(_field(filter_, key, [(value, str(word)) for value, word in words.items()]))
    return made + [_field(filter_, key, []) for key in TEXTS]


def found_facets(filter_: EpisodeFilter, counts: Mapping[str, Counter[Any]]) -> list[FacetBar]:
    """The facets that tell episodes apart: those with more than one value."""
    made = []
    for key, counter in counts.items():
        if key in filter_.values or len(counter) < 2:
            continue
        named = [(as_parameter(value), n) for value, n in counter.most_common()]
        known = [(value, n) for value, n in named if value]
        values = [
            FacetValue(PARAMETERS[key].show(value), n, _with(filter_, key, value))
            for value, n in known[:SHOWN]
        ]
        made.append(FacetBar(str(PARAMETERS[key].name), values, max(0, len(known) - SHOWN)))
    return made


def as_parameter(value: object) -> str:
    """A value of a column as the parameter that asks for it."""
    if value is None or value == "":
        return ""
    if isinstance(value, bool | int):  # a boolean as the database gives it
        return "yes" if value else "no"
    return str(value)


def _with(filter_: EpisodeFilter, key: str, value: str) -> str:
    query = filter_.query()
    return (f"{query}&" if query else "") + urlencode({key: value})


def _field(filter_: EpisodeFilter, key: str, options: list[tuple[str, str]]) -> Facet:
    value = filter_.values.get(key, "")
    made = mark_safe("".join(_option(name, word, name == value) for name, word in options))
    return Facet(key, str(PARAMETERS[key].name), value, made, HINTS.get(key, ""))


def _option(value: str, word: str, selected: bool) -> str:
    chosen = " selected" if selected else ""
    return f'<option value="{escape(value)}"{chosen}>{escape(word)}</option>'
