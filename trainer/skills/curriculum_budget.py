"""How many chunks an assisted group sees on average, held at a budget. Opt-in.

The published mapping gives rho to each chunk by its share of the largest effect, so the expected
number of visible chunks, the sum of all rho, moves with the bank. With a budget the scale of the
mapping is chosen so that the sum is the budget: prompts stay as long as they were, and a chunk
still shows in proportion to its effect between ``rho_min`` and ``rho_max``.
"""

from __future__ import annotations

from collections.abc import Sequence

BISECTIONS = 200
FAR = 1e9  # times the largest effect: at such a scale every rho is rho_min


def scale_for(
    effects: Sequence[float], *, held: int, expected: float, rho_min: float, rho_max: float
) -> float:
    """The scale at which the sum of all rho is ``expected`` chunks, or as near as can be.

    ``effects`` (reward units, above 0) are of chunks that the mapping moves; ``held`` chunks stay
    at ``rho_min``. The sum falls as the scale grows, so it is found by bisection of the exponent.
    """
    if not effects:
        return 1.0
    low, high = min(effects), max(effects) * FAR  # all at rho_max, all at rho_min
    if expected >= _sum(effects, low, held, rho_min, rho_max):
        return low
    if expected <= _sum(effects, high, held, rho_min, rho_max):
        return high
    for _ in range(BISECTIONS):
        middle = low * (high / low) ** 0.5
        if _sum(effects, middle, held, rho_min, rho_max) > expected:
            low = middle
        else:
            high = middle
    return high


def _sum(
    effects: Sequence[float], scale: float, held: int, rho_min: float, rho_max: float
) -> float:
    moved = (
        min(rho_max, max(rho_min, rho_min + (rho_max - rho_min) * effect / scale))
        for effect in effects
    )
    return sum(moved) + held * rho_min
