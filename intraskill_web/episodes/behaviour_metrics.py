"""The metrics of the behaviour explorer, and where an episode's row holds each. Pure.

``Episode.behaviour`` is JSON: a metric of ``METRICS`` under its name where it has a value, and
under ``phases`` turns and tokens of each of ``PHASES`` in their order, as one list because every
row has all ten.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

from trainer.analysis.behaviour import METRICS, PHASES, Behaviour

OUTCOMES_TOO = ("success", "reward")  # columns that are described like a metric
IN_PHASES = {
    f"{what}_{phase}": 2 * place + part
    for part, what in enumerate(("turns", "tokens"))
    for place, phase in enumerate(PHASES)
}
SHOWN = (*OUTCOMES_TOO, *METRICS, *IN_PHASES)


def stored(behaviour: Behaviour) -> dict[str, Any]:
    """What a row keeps of an episode's behaviour."""
    values = {name: value for name, value in behaviour.values.items() if value is not None}
    return {**values, "phases": list(chain.from_iterable(behaviour.phases[p] for p in PHASES))}


def lookup(metric: str) -> str:
    """The column of a metric, or its place in one, as a queryset asks for it."""
    if metric in OUTCOMES_TOO:
        return metric
    inside = f"phases__{IN_PHASES[metric]}" if metric in IN_PHASES else metric
    return f"behaviour__{inside}"


def value_of(metric: str, behaviour: Mapping[str, Any], row: object) -> float | None:
    """The value of a metric; ``row`` has the columns of ``OUTCOMES_TOO``."""
    if metric in OUTCOMES_TOO:
        value = getattr(row, metric)
    elif metric in IN_PHASES:
        phases = behaviour.get("phases")
        value = phases[IN_PHASES[metric]] if phases else None
    else:
        value = behaviour.get(metric)
    return float(value) if isinstance(value, int | float) else None
