"""From slime's nested Samples back to groups and outcomes, and the filter that judges them.

The filter looks at nothing but the Samples, so it judges the same way wherever they come from. The
rules are those of ``trainer.grpo.filter``; only who counts the outstanding groups differs: slime
does. Specification: training.md §4.8; failures told apart §9.6-9.8.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from trainer.engines.slime.samples import leaves, rollout_key
from trainer.grpo.filter import FailureStreak, TooManyFailedGroups
from trainer.grpo.groups import Group
from trainer.skills.masks import Mode, Treatment

#: failures that say nothing about shop and engine: slime's own stop, a task too long to begin
HARMLESS = frozenset({"aborted", "context_overflow"})
EMPTY_TRACE: Mapping[str, Any] = {"steps": [], "final": None, "error": None}


@dataclass(frozen=True, slots=True)
class SampleOutcome:
    """An episode as its rows describe it; ``trace`` is the recorded one where it is known."""

    scored: bool
    reward: Mapping[str, float]
    trace: Mapping[str, Any]

    @property
    def success(self) -> bool:
        """Scored, and the purchase met every wish."""
        return self.scored and self.reward.get("r_success") == 1.0


def outcome_of(sample: Any) -> SampleOutcome:
    """The outcome of the episode a row belongs to."""
    metadata = sample.metadata or {}
    reward = metadata.get("shopsim_reward", sample.reward)
    scored = metadata.get("shopsim_scored") is True
    trace = EMPTY_TRACE
    if not scored:
        reason = str(metadata.get("shopsim_abort_reason", "unknown"))
        category = str(metadata.get("shopsim_failure", "unknown"))
        trace = {
            **EMPTY_TRACE,
            "error": {"type": reason, "stage": "episode", "category": category},
        }
    return SampleOutcome(scored, dict(reward) if isinstance(reward, Mapping) else {}, trace)


def group_of(samples: Sequence[Any]) -> Group:
    """The group that nested rows form, each episode once, ordered by rollout id."""
    rows = leaves(samples)
    first: dict[int, Any] = {}
    for row in rows:
        first.setdefault(rollout_key(row), row)
    keys = tuple(sorted(first))
    assignment = next((a for row in rows if (a := _assignment(row))), None) or {}
    metadata = rows[0].metadata or {} if rows else {}
    return Group(
        group_index=int(rows[0].group_index) if rows and rows[0].group_index is not None else -1,
        task_id=int(metadata.get("shopsim_task_id", metadata.get("task_id", -1))),
        treatment=Treatment(
            cast(Mode, assignment.get("mode", "assisted_empty")),
            tuple(assignment.get("skill_ids", ())),
        ),
        sample_indices=keys,
        outcomes=tuple(outcome_of(first[key]) for key in keys),
    )


def _assignment(row: Any) -> Mapping[str, Any] | None:
    value = (row.metadata or {}).get("shopsim_assignment")
    return value if isinstance(value, Mapping) and value else None


class FailureWatch:
    """Ends a run whose shop or engine is broken: by losses in a row, or by their share.

    Groups lost for harmless reasons are neither counted nor do they reset the row.
    """

    def __init__(self, *, limit: int, window: int, max_share: float) -> None:
        self.streak = FailureStreak(limit)
        self.settings = (limit, window, max_share)
        self._recent: deque[bool] = deque(maxlen=window)
        self._max_share = max_share

    def note(self, group: Group) -> None:
        """Count a finished group. Raises TooManyFailedGroups."""
        failures = {
            outcome.trace["error"]["category"]
            for outcome in group.outcomes
            if not outcome.scored and outcome.trace.get("error")
        }
        if failures and failures <= HARMLESS:
            return
        self.streak.note(group)
        self._recent.append(not group.all_scored)
        full = len(self._recent) == self._recent.maxlen
        share = sum(self._recent) / len(self._recent)
        if full and share > self._max_share:
            raise TooManyFailedGroups(
                f"{share:.0%} of the last {len(self._recent)} groups could not be scored "
                f"(limit {self._max_share:.0%})"
            )
