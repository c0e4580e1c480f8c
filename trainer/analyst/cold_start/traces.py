"""The traces that a first skill is drawn from: finished, scored, bare, of training tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.analyst.triage_queue import Case
from trainer.errors import InputError
from trainer.files import read_jsonl
from trainer.rollout.traces import is_complete, score


@dataclass(frozen=True, slots=True)
class Channels:
    """Both channels, each in order of episode ids; ``missing`` are episodes without a score."""

    successes: tuple[Case, ...]
    failures: tuple[Case, ...]
    missing: tuple[str, ...]

    @property
    def all(self) -> tuple[Case, ...]:
        return (*self.successes, *self.failures)


def read_channels(run_dir: Path, limit: int | None) -> Channels:
    """The first ``limit`` episodes of an evaluation, by outcome.

    Raises InputError when there are none, or one is not what a cold start may read.
    """
    path = run_dir / "traces.jsonl"
    latest: dict[str, dict[str, Any]] = {}
    for trace in read_jsonl(path):
        latest[trace["episode_id"]] = trace
    if not latest:
        raise InputError(
            "no traces of an evaluation", file=path, remedy="Evaluate the train split first"
        )
    successes, failures, missing = [], [], []
    for name in sorted(latest)[:limit]:
        trace = latest[name]
        if not is_complete(trace):
            missing.append(name)
            continue
        _require_usable(trace, path)
        reward = score(trace["final"])
        if reward is None:
            missing.append(name)
        elif reward["r_success"] == 1.0:
            successes.append(Case({}, trace, "cold_start"))
        else:
            failures.append(Case({}, trace, "cold_start"))
    return Channels(tuple(successes), tuple(failures), tuple(missing))


def _require_usable(trace: Mapping[str, Any], path: Path) -> None:
    where = str(trace["episode_id"])
    if trace["job"]["split"] != "train":
        raise InputError(
            "a first skill is drawn from training tasks only",
            file=path,
            field=where,
            value=trace["job"]["split"],
            remedy="Evaluate the train split",
        )
    if trace["selected_skills"]:
        raise InputError(
            "the episode was played with chunks",
            file=path,
            field=where,
            remedy="Evaluate without a skill bank",
        )
