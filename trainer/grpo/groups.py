"""A group: one task, one treatment, G sibling episodes, and what was made of them.

The group is the unit of treatment, of filtering, of the advantage and of triage. Groups are
numbered over the whole experiment. Definitions: training.md §4.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from trainer.skills.masks import Treatment


class Outcome(Protocol):
    """What the method needs to know of an episode; both engines' results have it."""

    @property
    def scored(self) -> bool: ...
    @property
    def success(self) -> bool: ...
    @property
    def reward(self) -> Mapping[str, float]: ...
    @property
    def trace(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Group:
    """The sibling episodes of a group, ordered by sample index, and the treatment they share.

    ``sample_indices`` count over the whole experiment: ``group_index * G + position``.
    """

    group_index: int
    task_id: int
    treatment: Treatment
    sample_indices: tuple[int, ...]
    outcomes: tuple[Outcome, ...]

    def __post_init__(self) -> None:
        if len(self.sample_indices) != len(self.outcomes):
            raise ValueError(
                f"group {self.group_index}: {len(self.sample_indices)} indices "
                f"for {len(self.outcomes)} episodes"
            )
        if len(set(self.sample_indices)) != len(self.sample_indices):
            raise ValueError(f"group {self.group_index}: a sample index was reported twice")

    @property
    def all_scored(self) -> bool:
        """Every sibling could be scored, and there is at least one."""
        return bool(self.outcomes) and all(outcome.scored for outcome in self.outcomes)

    @property
    def all_wrong(self) -> bool:
        """Every sibling was scored and none succeeded."""
        return self.all_scored and not any(outcome.success for outcome in self.outcomes)

    @property
    def rewards(self) -> tuple[float, ...]:
        """The scalar rewards in sample order; only a fully scored group has them."""
        return tuple(outcome.reward["reward"] for outcome in self.outcomes)

    def mixed_success(self) -> bool:
        """Some siblings succeeded and some did not."""
        return len({outcome.success for outcome in self.outcomes}) == 2


def sample_indices(group_index: int, episodes: int) -> tuple[int, ...]:
    """The experiment-wide sample indices of a group's siblings."""
    return tuple(range(group_index * episodes, (group_index + 1) * episodes))
