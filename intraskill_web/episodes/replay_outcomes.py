"""What came of replays beside what had come of the original: counts and an interval."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from intraskill_web.episodes.models import Episode

BINS = 10  # of the rewards
MOST = 64


@dataclass(frozen=True, slots=True)
class Distribution:
    """The outcomes of a treatment on this task."""

    n: int
    scored: int
    success: int
    mean: float | None
    turns: float | None
    low: float | None
    high: float | None
    bins: tuple[int, ...]  # scored episodes by reward, from 0 to 1 in equal parts

    @classmethod
    def of(cls, outcomes: list[dict[str, Any]]) -> Distribution:
        """Success with its 95 % Wilson interval over the scored ones."""
        scored = [o for o in outcomes if o["reward"] is not None]
        won = sum(bool(o["success"]) for o in scored)
        low, high = wilson(won, len(scored))
        counts = Counter(min(BINS - 1, max(0, int(o["reward"] * BINS))) for o in scored)
        return cls(
            n=len(outcomes),
            scored=len(scored),
            success=won,
            mean=fmean(o["reward"] for o in scored) if scored else None,
            turns=fmean(o["turns"] for o in scored) if scored else None,
            low=low,
            high=high,
            bins=tuple(counts[place] for place in range(BINS)),
        )

    @property
    def shares(self) -> list[tuple[str, int]]:
        """Each bin's range of rewards and its count, the empty ones left out."""
        return [
            (f"{place / BINS:.1f} – {(place + 1) / BINS:.1f}", count)
            for place, count in enumerate(self.bins)
            if count
        ]


def wilson(won: int, n: int) -> tuple[float | None, float | None]:
    """The 95 % score interval of a share (Wilson 1927); nothing for n = 0."""
    if not n:
        return None, None
    z = 1.959964
    share = won / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * ((share * (1 - share) + z * z / (4 * n)) / n) ** 0.5 / (1 + z * z / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def original(episode: Episode) -> Distribution:
    """The original and what stands beside it under the same treatment: its group or its arm."""
    rows = Episode.objects.filter(experiment=episode.experiment_id, purpose=episode.purpose)
    if episode.group_index is not None:
        rows = rows.filter(group_index=episode.group_index)
    else:
        rows = rows.filter(round=episode.round_id, arm=episode.arm, task_id=episode.task_id)
    return Distribution.of(
        [{"reward": e.reward, "success": e.success, "turns": e.turns} for e in rows[:MOST]]
    )
