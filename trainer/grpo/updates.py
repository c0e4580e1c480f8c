"""A step's optimiser updates: whole groups each, and one line for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.grpo.groups import Group


def split_groups(groups: Sequence[Group], parts: int) -> list[Sequence[Group]]:
    """Cut groups into consecutive parts of equal size, one for each update.

    Raises ValueError when they cannot be cut evenly: a group may not straddle two updates.
    """
    size, rest = divmod(len(groups), parts)
    if rest or not size:
        raise ValueError(f"{len(groups)} groups cannot be split into {parts} updates")
    return [groups[start : start + size] for start in range(0, len(groups), size)]


def means(updates: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The step's mean of each update metric, so that one axis shows both."""
    names = sorted({name for line in updates for name in line["metrics"]})
    return {
        name: sum(values) / len(values)
        for name in names
        if (values := [line["metrics"][name] for line in updates if name in line["metrics"]])
    }
