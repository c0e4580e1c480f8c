"""The usefulness probe: does a candidate's text help the policy, before it takes a slot?

A counterfactual trial proves that a task can be won, not that the text makes the policy win it. So
the policy plays the tasks that led to the candidate, and others, with and without it, on the same
random numbers. Specification: gate-analysis.md §16.4.

In the context ``alone`` the prompt shows nothing but the candidate, or else nothing (for a rewrite,
its target): there a text has the most to say. In the context ``full`` all active chunks stand
around it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, pstdev
from typing import Any

from trainer.analyst.settings import ProbeSettings
from trainer.canonical import fingerprint
from trainer.rollout.driver import run_episodes
from trainer.rollout.policy import Policy
from trainer.rollout.types import EpisodeJob, EpisodeRequest
from trainer.shop.world import World
from trainer.skills.types import Chunk

#: standard errors that count in a candidate's favour
MARGIN = 2.0
#: (task, sample) of one episode
Key = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Effect:
    """Mean change of the reward and its standard error over ``episodes`` paired episodes."""

    change: float
    se: float
    episodes: int

    @classmethod
    def of(cls, differences: Sequence[float]) -> Effect:
        if not differences:
            return cls(0.0, 0.0, 0)
        spread = pstdev(differences) / math.sqrt(len(differences))
        return cls(fmean(differences), spread, len(differences))

    def to_record(self) -> dict[str, Any]:
        return {
            "change": round(self.change, 6),
            "se": round(self.se, 6),
            "episodes": self.episodes,
        }


@dataclass(slots=True)
class Prober:
    """Plays the policy of the finished round with its bank; equal questions are played once."""

    world: World
    policy: Policy
    chunks: Sequence[Chunk]
    settings: ProbeSettings
    seed: int
    split: str = "train"
    _played: dict[str, dict[Key, float]] = field(default_factory=dict)
    _known: dict[str, Effect] = field(default_factory=dict)
    _order: list[int] = field(default_factory=list)

    def identity(self) -> dict[str, Any]:
        """What decides a measurement besides the text and the tasks."""
        return {
            "policy": dict(self.policy.identity()),
            "settings": self.settings.model_dump(mode="json"),
            "seed": self.seed,
        }

    def on_sources(self, item: Mapping[str, Any], content: str, tasks: Iterable[int]) -> Effect:
        """The effect on the tasks that led to a candidate (the first ``source_tasks``)."""
        chosen = sorted(set(tasks))[: self.settings.source_tasks]
        return self._effect(item, content, chosen, self.settings.rollouts_per_task)

    def on_others(self, item: Mapping[str, Any], content: str, tasks: Iterable[int]) -> Effect:
        """The effect on unrelated tasks of the same split, the same ones for every candidate."""
        related = set(tasks)
        others = [task for task in self._drawn() if task not in related]
        return self._effect(item, content, others[: self.settings.unrelated_tasks], 1)

    def _drawn(self) -> list[int]:
        """The split's tasks in an order of the seed's own."""
        if not self._order:
            self._order += sorted(
                self.world.split(self.split),
                key=lambda task: fingerprint([self.seed, "probe", task]),
            )
        return self._order

    def _effect(
        self, item: Mapping[str, Any], content: str, tasks: Sequence[int], rollouts: int
    ) -> Effect:
        question = fingerprint([item["operation"], item.get("target_chunk_id"), content, *tasks])
        if question not in self._known:
            before, after = self._prompts(item.get("target_chunk_id") or None, content)
            keys = [(task, sample) for task in tasks for sample in range(rollouts)]
            old, new = self._play(before, keys), self._play(after, keys)
            self._known[question] = Effect.of([new[key] - old[key] for key in keys])
        return self._known[question]

    def _prompts(self, target: str | None, content: str) -> tuple[list[Chunk], list[Chunk]]:
        """The chunks without the candidate and with it: in its target's place, else at the end."""
        alone = self.settings.context == "alone"
        before = [c for c in self.chunks if not alone or c.skill_id == target]
        if target is None:
            return before, [*before, Chunk("candidate", content)]
        return before, [Chunk(target, content) if c.skill_id == target else c for c in before]

    def _play(self, chunks: Sequence[Chunk], keys: Sequence[Key]) -> dict[Key, float]:
        """Rewards of the episodes; one that could not be scored counts as nothing."""
        known = self._played.setdefault(fingerprint([chunk.content for chunk in chunks]), {})
        missing = [key for key in keys if key not in known]
        requests = [
            EpisodeRequest(
                job=EpisodeJob.of(self.seed, task, sample, self.split),
                episode_id=f"probe-task-{task:06d}-sample-{sample:03d}",
                noise_key=f"probe:{self.seed}:{task}:{sample}",
                chunks=tuple(chunks),
                skills={"provider": "probe"},
            )
            for task, sample in missing
        ]
        results = run_episodes(self.world, self.policy, requests)
        for key, result in zip(missing, results, strict=True):
            known[key] = result.reward.get("reward", 0.0)
        return known


@dataclass(frozen=True, slots=True)
class Screened:
    """The items that passed, each with its measurement, and the cards of those that did not."""

    items: tuple[Mapping[str, Any], ...]
    rejected_cards: tuple[str, ...]
    notes: tuple[str, ...]


def screen(
    prober: Prober,
    items: Sequence[Mapping[str, Any]],
    contents: Sequence[str],
    task_of: Mapping[str, int],
) -> Screened:
    """Refuse what does not help where it should, or does harm elsewhere, beyond its error."""
    limits = prober.settings
    kept, rejected, notes = [], [], []
    for item, content in zip(items, contents, strict=True):
        tasks = [task_of[card] for card in item["evidence_card_ids"]]
        here = prober.on_sources(item, content, tasks)
        there = prober.on_others(item, content, tasks)
        useless = here.change + MARGIN * here.se < limits.least_gain
        if useless or there.change + MARGIN * there.se < -limits.greatest_harm:
            rejected += item["evidence_card_ids"]
            notes.append(
                f"{item['title']}: probe {here.change:+.3f} on its own tasks, "
                f"{there.change:+.3f} on others"
            )
            continue
        record = {"on_sources": here.to_record(), "on_others": there.to_record()}
        kept.append({**item, "probe": record})
    return Screened(tuple(kept), tuple(rejected), tuple(notes))
