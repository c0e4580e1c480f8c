"""The select boxes above the episode list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from intraskill_web.episodes.filters import PARAMETERS, EpisodeFilter

SELECTS = ("purpose", "treatment", "outcome", "triage", "termination", "admitted")
TEXTS = ("round", "step", "group", "task", "chunk", "reward")


@dataclass(frozen=True, slots=True)
class Facet:
    """One control: a select with options, or a text field without."""

    key: str
    name: str
    value: str
    options: list[tuple[str, str]]


def facets(filter_: EpisodeFilter, experiments: Sequence[str]) -> list[Facet]:
    """The controls in their fixed order."""
    value = filter_.values.get("experiment", "")
    names = [value, *experiments] if value and value not in experiments else experiments
    made = [
        Facet(
            "experiment",
            str(PARAMETERS["experiment"].name),
            value,
            [(name, name) for name in names],
        )
    ]
    for key in SELECTS:
        words: Mapping[str, Any] = PARAMETERS[key].words or {}
        options = [(value, str(word)) for value, word in words.items()]
        made.append(_facet(filter_, key, options))
    made += [_facet(filter_, key, []) for key in TEXTS]
    return made


def _facet(filter_: EpisodeFilter, key: str, options: list[tuple[str, str]]) -> Facet:
    return Facet(key, str(PARAMETERS[key].name), filter_.values.get(key, ""), options)
