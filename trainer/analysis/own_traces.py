"""Traces of our own runs → behaviour and task values, each file read once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from trainer.analysis.behaviour import Behaviour, behaviour
from trainer.analysis.cohorts import Population
from trainer.analysis.reader import Reader
from trainer.compare.outcomes import Arm, arm_of
from trainer.compare.outcomes import behaviour as task_behaviour
from trainer.files import read_jsonl
from trainer.grpo.publish import read_traces
from trainer.reading import Node
from trainer.rollout.traces import is_complete, score

SAMPLED = "sampled tokens"


def latest(path: Path) -> Iterator[dict[str, Any]]:
    """The last record of every episode of an evaluation."""
    found: dict[str, dict[str, Any]] = {}
    for trace in read_jsonl(path):
        found[trace["episode_id"]] = trace
    yield from found.values()


def evaluation(
    reader: Reader, folder: str, name: str, split: str, round_number: int | None
) -> tuple[Population, Arm] | None:
    """Behaviour and task values of one evaluation; None before it has traces."""
    file = f"{folder}/traces.jsonl"
    if not reader.has(file):
        return None
    path = reader.note(file)
    episodes: list[Behaviour] = []
    tasks: dict[int, list[dict[str, float]]] = {}
    for trace in latest(path):
        episodes.append(behaviour(trace))
        reward = score(trace["final"]) if is_complete(trace) else None
        if reward is not None and trace["error"] is None:
            values = {**reward, **task_behaviour(Node(trace, path))}
            tasks.setdefault(trace["job"]["task_id"], []).append(values)
    if not tasks:
        return None
    population = Population(name, split, round_number, episodes, SAMPLED, file)
    return population, arm_of(name, tasks)


def training_population(reader: Reader, folder: str, number: int) -> Population | None:
    """Every training episode of a round, without the full-skill retries."""
    files = sorted((reader.root / folder / "train" / "steps").glob("step-*.jsonl.gz"))
    if not files:
        return None
    episodes = [behaviour(trace) for trace in _training_traces(files)]
    return Population(
        f"train_r{number}", "train", number, episodes, SAMPLED, f"{folder}/train/steps/"
    )


def _training_traces(files: Iterable[Path]) -> Iterator[dict[str, Any]]:
    for path in files:
        for trace in read_traces(path):
            skills = (trace.get("provenance") or {}).get("skills") or {}
            if not skills.get("diagnostic_full_skill"):
                yield trace
