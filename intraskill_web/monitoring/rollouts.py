"""Counts over a round's training episodes, by step, treatment and triage: one query for all panels.

Rows are grouped by what a group shares (treatment, admission, triage), so that groups can be
counted by their distinct index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.db.models import Count, Q, Sum

from intraskill_web.episodes.models import Episode
from intraskill_web.experiments.models import Round

RETRY_FAILED = "full_skill_failure_pending_analysis"
RETRY_SUCCEEDED = "model_internalization_deficit"
NO_RETRY = "all_wrong_retry_disabled"
ALL_WRONG = (RETRY_FAILED, RETRY_SUCCEEDED, NO_RETRY)


@dataclass(frozen=True, slots=True)
class Cell:
    """Groups of one step that share treatment, admission and triage."""

    step: int
    treatment: str
    admitted: bool | None
    triage: str
    groups: int
    episodes: int
    scored: int
    successes: int
    reward: float
    turns: int
    protocol_errors: int


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums over some cells."""

    groups: int = 0
    episodes: int = 0
    scored: int = 0
    successes: int = 0
    reward: float = 0.0
    turns: int = 0
    protocol_errors: int = 0

    @property
    def success_rate(self) -> float | None:
        """Successes over scored episodes."""
        return self.successes / self.scored if self.scored else None

    @property
    def reward_mean(self) -> float | None:
        """Mean reward over scored episodes."""
        return self.reward / self.scored if self.scored else None


@dataclass(frozen=True, slots=True)
class Rollouts:
    """All cells of a round."""

    cells: tuple[Cell, ...]

    @property
    def steps(self) -> list[int]:
        """Steps that have episodes, ascending."""
        return sorted({cell.step for cell in self.cells})

    def tally(self, keep: Callable[[Cell], bool] = lambda _cell: True) -> Tally:
        """The sums over the cells that ``keep`` accepts."""
        return total(cell for cell in self.cells if keep(cell))

    def by_step(self, keep: Callable[[Cell], bool] = lambda _cell: True) -> dict[int, Tally]:
        """The sums a step, also of steps where nothing is kept."""
        kept: dict[int, list[Cell]] = {step: [] for step in self.steps}
        for cell in self.cells:
            if keep(cell):
                kept[cell.step].append(cell)
        return {step: total(cells) for step, cells in kept.items()}


def total(cells: Iterable[Cell]) -> Tally:
    """The sums over ``cells``."""
    kept = list(cells)
    return Tally(
        groups=sum(c.groups for c in kept),
        episodes=sum(c.episodes for c in kept),
        scored=sum(c.scored for c in kept),
        successes=sum(c.successes for c in kept),
        reward=sum(c.reward for c in kept),
        turns=sum(c.turns for c in kept),
        protocol_errors=sum(c.protocol_errors for c in kept),
    )


def of_round(round_: Round) -> Rollouts:
    """The cells of ``round_``: one query."""
    rows = (
        Episode.objects.filter(round=round_, purpose="train", step__isnull=False)
        .values("step", "treatment_mode", "admitted", "triage")
        .annotate(
            groups=Count("group_index", distinct=True),
            episodes=Count("id"),
            scored_n=Count("id", filter=Q(scored=True)),
            successes=Count("id", filter=Q(success=True)),
            reward_sum=Sum("reward", filter=Q(scored=True)),
            turn_sum=Sum("turns"),
            error_sum=Sum("protocol_errors"),
        )
        .order_by("step")
    )
    return Rollouts(
        tuple(
            Cell(
                step=row["step"] or 0,
                treatment=row["treatment_mode"],
                admitted=row["admitted"],
                triage=row["triage"],
                groups=row["groups"],
                episodes=row["episodes"],
                scored=row["scored_n"],
                successes=row["successes"],
                reward=row["reward_sum"] or 0.0,
                turns=row["turn_sum"] or 0,
                protocol_errors=row["error_sum"] or 0,
            )
            for row in rows
        )
    )
