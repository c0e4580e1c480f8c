"""Optimiser updates, the first and the second of a step apart.

The first update of a step is strictly on-policy (its KL and clip fraction are zero), the second is
one update off; their mean would halve every off-policy figure (published-figures.md §9).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainer.analysis.schema_outcomes import UpdateSummary
from trainer.analysis.schema_values import Described, Table
from trainer.means import mean

KEYS = ("update", "step", "round", "part")


def updates_table(rows: Sequence[dict[str, float]], source: str) -> Table:
    """The updates with their place (``part``) inside their step, from 1."""
    names = sorted({name for row in rows for name in row if "/" in name})
    placed: list[list[float | int | str | None]] = []
    seen: dict[int, int] = {}
    for row in sorted(rows, key=lambda row: row["update"]):
        step = int(row["step"])
        seen[step] = seen.get(step, 0) + 1
        head = [int(row["update"]), step, int(row["round"]), seen[step]]
        placed.append([*head, *(row.get(name) for name in names)])
    return Table(columns=[*KEYS, *names], rows=placed, source=source)


def summaries(table: Table) -> list[UpdateSummary]:
    """Each metric by round, over all updates and over each part."""
    found = []
    parts = sorted({int(row[3] or 0) for row in table.rows})
    rounds = sorted({int(row[2] or 0) for row in table.rows})
    for number in rounds:
        for part in (None, *(parts if len(parts) > 1 else ())):
            rows = [r for r in table.rows if r[2] == number and part in (None, r[3])]
            for place, metric in enumerate(table.columns[len(KEYS) :], len(KEYS)):
                values = [float(v) for r in rows if (v := r[place]) is not None]
                if values:
                    found.append(_summary(number, part, metric, values, table.source))
    return found


def _summary(
    number: int, part: int | None, metric: str, values: Sequence[float], source: str
) -> UpdateSummary:
    array = np.array(values)
    return UpdateSummary(
        round=number,
        part="all" if part is None else f"{part}",
        metric=metric,
        figures=Described(
            n=len(values),
            mean=mean(array),
            median=float(np.median(array)),
            least=float(array.min()),
            most=float(array.max()),
        ),
        zeros=int(np.sum(array == 0.0)),
        source=source,
    )
