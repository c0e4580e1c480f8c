"""What was bought beside what was wanted, line by line. Pure.

The wanted side is the private goal: only who may see it is given these lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from intraskill_web.episodes.shop_pages import (
    mapping,
    number,
    price_format,
    priced,
    sequence,
    text,
)


@dataclass(frozen=True, slots=True)
class Line:
    """One aspect; ``met`` is None where it cannot be told."""

    name: str
    bought: str
    wanted: str
    met: bool | None


def lines(trace: Mapping[str, Any]) -> list[Line]:
    """The lines of a trace that ended with a purchase or has a goal; none without either."""
    final = mapping(trace.get("final"))
    bought, goal = mapping(final.get("purchase")), mapping(final.get("goal"))
    if not goal:
        return []
    written = price_format(trace)
    price, most = number(bought.get("price")), number(goal.get("price_upper"))
    made = [
        Line("product", text(bought.get("name")), text(goal.get("name")), None),
        _same("asin", bought, goal),
        _same("category", bought, goal),
        Line(
            "price",
            priced(bought.get("price"), written),
            "" if most is None else f"≤ {priced(f'{most:g}', written)}",
            None if price is None or most is None else price <= most,
        ),
        _all_in("options", bought.get("options"), goal.get("goal_options")),
        _all_in("attributes", bought.get("attributes"), goal.get("attributes")),
    ]
    return [line for line in made if line.bought or line.wanted]


def _same(name: str, bought: Mapping[str, Any], goal: Mapping[str, Any]) -> Line:
    ours, wanted = text(bought.get(name)), text(goal.get(name))
    return Line(name, ours, wanted, ours == wanted if ours and wanted else None)


def _all_in(name: str, bought: object, wanted: object) -> Line:
    """Whether every wanted value is among those bought; options may be an object by axis."""
    have = list(bought.values()) if isinstance(bought, Mapping) else sequence(bought)
    want = sequence(wanted)
    ours, wishes = [text(v) for v in have], [text(v) for v in want]
    met = all(wish in ours for wish in wishes) if wishes else None
    return Line(name, ", ".join(ours), ", ".join(wishes), met)
