"""Linear scales and round ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

TINY = 1e-9  # what is closer than this is the same on every axis we draw
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps ``[low, high]`` to ``[start, end]``, linearly and without clamping."""

    low: float
    high: float
    start: float = 0.0
    end: float = 100.0

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def clamp(self, value: float) -> float:
        """Like a call, kept inside the range."""
        return self(min(max(value, self.low), self.high))


def tick_step(low: float, high: float, count: int) -> float:
    """The round step that gives about ``count`` intervals between ``low`` and ``high``."""
    rough = (high - low) / max(count, 1)
    if not rough > 0:
        raise ValueError(f"an axis needs low < high (found {low} and {high})")
    power = 10.0 ** math.floor(math.log10(rough))
    return min((s * power for s in STEPS), key=lambda step: abs(math.log(step / rough)))


def ticks(low: float, high: float, count: int = 4) -> list[float]:
    """Round values inside ``[low, high]``, ascending."""
    step = tick_step(low, high, count)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 10) + 0.0 for i in range(first, last + 1)]


def whole_ticks(low: float, high: float, count: int = 4) -> list[tuple[float, str]]:
    """Round whole numbers inside ``[low, high]`` with their texts, for axes that count.

    At the first step of a run both ends are that step.
    """
    if low == high:
        return [(low, f"{low:.0f}")]
    step = max(1.0, tick_step(low, high, count))
    step = 5.0 if step == 2.5 else step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(i * step, f"{i * step:.0f}") for i in range(first, last + 1)]


def widen(values: Iterable[float], count: int = 4) -> tuple[float, float]:
    """The smallest round range that holds ``values``; a single value gets room on both sides."""
    known = [v for v in values if math.isfinite(v)]
    if not known:
        return 0.0, 1.0
    low, high = min(known), max(known)
    if high - low < TINY:
        room = max(abs(low) / 2, TINY) if abs(low) > TINY else 1.0
        low, high = low - room, high + room
    step = tick_step(low, high, count)
    return round(math.floor(low / step + 1e-9) * step, 10), round(
        math.ceil(high / step - 1e-9) * step, 10
    )


def rate_range(values: Iterable[float]) -> tuple[float, float]:
    """A range for rates: ends at 1 when the values come near, never leaves [0, 1]."""
    known = [v for v in values if math.isfinite(v)]
    if not known:
        return 0.0, 1.0
    low, high = widen([*known, min(1.0, max(known) + 0.05)])
    return max(0.0, low), 1.0 if high > 0.85 else min(1.0, high)


def decimals(values: Sequence[float]) -> int:
    """How many decimals, at most six, show each of the ticks ``values`` exactly."""
    for places in range(6):
        if all(abs(value - round(value, places)) < 1e-9 for value in values):
            return places
    return 6
