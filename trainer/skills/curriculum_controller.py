"""q that follows how much of the skill the policy has taken in. Opt-in; the default is a fixed q.

The method's aim is a policy that does without its skill. How far it is from that is the gap between
success with the full skill and without any, measured on the same tasks after each round. As the
gap closes, skill-free groups teach more than assisted ones, so q rises:

    closed_t = clip(1 - (gap_t + se_t) / gap_0, 0, 1)
    target_t = q_0 + (q_max - q_0) * closed_t
    q_{t+1}  = max(q_t, min(q_t + q_step, target_t))

``gap_0`` is the gap of the starting checkpoint and ``se_t`` the standard error of the paired
differences, added so that noise alone raises nothing. q never falls, and is never 0: without
skill-free groups nothing would say whether the policy needs the skill.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from trainer.errors import InputError
from trainer.files import read_jsonl
from trainer.rollout.traces import score

NAME = "gap_closing"


@dataclass(frozen=True, slots=True)
class Gap:
    """Success with the full skill minus without any, over ``n`` tasks, with its standard error."""

    mean: float
    se: float
    n: int


@dataclass(frozen=True, slots=True)
class Controller:
    """The bounds: q of the first round, the highest q, and the most it may rise in a round."""

    q: float
    q_max: float
    q_step: float

    def __post_init__(self) -> None:
        if not 0.0 < self.q <= self.q_max <= 1.0:
            raise InputError(
                "an adaptive q needs 0 < q <= q_max <= 1",
                field="q_max",
                value=(self.q, self.q_max),
                remedy="Begin above 0: without skill-free groups the gap cannot be taught away",
            )

    def course(self, gaps: Sequence[Gap]) -> list[float]:
        """q of every round up to the one after the last gap; ``gaps[0]`` is of the start."""
        course = [self.q]
        for gap in gaps[1:]:
            reached = min(course[-1] + self.q_step, self._target(gap, gaps[0]))
            course.append(max(course[-1], reached))
        return course

    def _target(self, gap: Gap, start: Gap) -> float:
        if start.mean <= 0.0:  # the skill never helped, so there is nothing to take in
            return self.q
        closed = min(1.0, max(0.0, 1.0 - (gap.mean + gap.se) / start.mean))
        return self.q + (self.q_max - self.q) * closed

    def record(self, gaps: Sequence[Gap]) -> dict[str, Any]:
        """What a curriculum says about where its q comes from."""
        return {
            "name": NAME,
            "q": self.q,
            "q_max": self.q_max,
            "q_step": self.q_step,
            "gaps": [{"gap": gap.mean, "se": gap.se, "n": gap.n} for gap in gaps],
            "course": self.course(gaps),
        }


def measured_gap(folder: Path) -> Gap:
    """The gap of an evaluation of both arms: ``folder/full`` and ``folder/bare``.

    Tasks that both arms scored count. Raises InputError where there are fewer than two.
    """
    full, bare = _success(folder / "full"), _success(folder / "bare")
    differences = [full[key] - bare[key] for key in full if key in bare]
    if len(differences) < 2:
        raise InputError(
            f"both arms scored {len(differences)} tasks in common",
            file=folder,
            remedy="An adaptive q needs a finished evaluation with and without skill",
        )
    se = stdev(differences) / len(differences) ** 0.5
    return Gap(fmean(differences), se, len(differences))


def _success(arm: Path) -> dict[tuple[int, int], float]:
    """(task, sample) → 1.0 or 0.0."""
    found = {}
    for trace in read_jsonl(arm / "traces.jsonl"):
        reward = score(trace.get("final"))
        if reward is not None:
            key = (trace["job"]["task_id"], trace["job"]["sample_id"])
            found[key] = float(reward["r_success"] == 1.0)
    return found
