"""How the episodes of a cohort went as a whole: ``describe`` of gate-analysis.md §14.1."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from intraskill_web.episodes.replay_outcomes import wilson
from trainer.analysis.behaviour import PHASES, SHARES


@dataclass(frozen=True, slots=True)
class Described:
    """A scored episode as the explorer reads it."""

    cohort: str
    task: int
    behaviour: Mapping[str, Any]
    termination: str
    success: bool | None
    reward: float | None


@dataclass(frozen=True, slots=True)
class Share:
    """Episodes with at least one of something, and the 95 % Wilson interval of their share."""

    metric: str
    count: int
    share: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Phase:
    """Turns and sampled tokens on one kind of page, over all episodes."""

    name: str
    turns: int
    tokens: int
    episodes: int

    @property
    def turns_per_episode(self) -> float:
        return self.turns / self.episodes

    @property
    def tokens_per_turn(self) -> float | None:
        return self.tokens / self.turns if self.turns else None


@dataclass(frozen=True, slots=True)
class Profile:
    """A cohort. Shares are of the ``walked`` episodes, phases of those that were read with them."""

    cohort: str
    n: int
    tasks: int
    success_rate: float | None
    reward_mean: float | None
    walked: int
    shares: tuple[Share, ...]
    token_complete: int
    tokens_per_turn: float | None  # pooled over the episodes whose every turn has a count
    phases: tuple[Phase, ...]
    terminations: Mapping[str, int]

    def data(self) -> dict[str, Any]:
        """The profile for JSON."""
        return {
            "cohort": self.cohort,
            "n": self.n,
            "tasks": self.tasks,
            "success_rate": self.success_rate,
            "reward_mean": self.reward_mean,
            "walked": self.walked,
            "shares": {
                f"any_{s.metric}": {"n": s.count, "share": s.share, "low": s.low, "high": s.high}
                for s in self.shares
            },
            "token_complete": self.token_complete,
            "pooled_tokens_per_turn": self.tokens_per_turn,
            "phases": {
                p.name: {
                    "turns": p.turns,
                    "turns_per_episode": p.turns_per_episode,
                    "tokens": p.tokens,
                    "tokens_per_turn": p.tokens_per_turn,
                }
                for p in self.phases
            },
            "terminations": dict(self.terminations),
        }


def profiles(rows: Iterable[Described]) -> dict[str, Profile]:
    """The profile of every cohort, by its name."""
    found: dict[str, list[Described]] = defaultdict(list)
    for row in rows:
        found[row.cohort].append(row)
    return {name: _profile(name, own) for name, own in found.items()}


def _profile(name: str, rows: Sequence[Described]) -> Profile:
    rewards = [row.reward for row in rows if row.reward is not None]
    walked = [row.behaviour for row in rows if row.behaviour]
    whole = [b for b in walked if b.get("tokens_per_turn") is not None]
    turns = sum(b["model_steps"] for b in whole)
    return Profile(
        cohort=name,
        n=len(rows),
        tasks=len({row.task for row in rows}),
        success_rate=fmean(bool(row.success) for row in rows),
        reward_mean=fmean(rewards) if rewards else None,
        walked=len(walked),
        shares=tuple(_share(metric, walked) for metric in SHARES) if walked else (),
        token_complete=len(whole),
        tokens_per_turn=sum(b["generated_tokens"] for b in whole) / turns if turns else None,
        phases=_phases([b["phases"] for b in walked if "phases" in b]),
        terminations=dict(Counter(row.termination for row in rows).most_common()),
    )


def _share(metric: str, walked: Sequence[Mapping[str, Any]]) -> Share:
    count = sum((b.get(metric) or 0) > 0 for b in walked)
    low, high = wilson(count, len(walked))
    return Share(metric, count, count / len(walked), low, high)


def _phases(stored: Sequence[Sequence[int]]) -> tuple[Phase, ...]:
    if not stored:
        return ()
    totals = [sum(column) for column in zip(*stored, strict=True)]
    return tuple(
        Phase(name, totals[2 * i], totals[2 * i + 1], len(stored)) for i, name in enumerate(PHASES)
    )
