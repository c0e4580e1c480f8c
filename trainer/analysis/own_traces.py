"""Traces of our own runs → behaviour and task values, each file read once."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from trainer.analysis.behaviour import Behaviour, behaviour
from trainer.analysis.cohorts import Population
from trainer.analysis.parallel import in_order
from trainer.analysis.reader import Reader
from trainer.compare.outcomes import Arm, arm_of
from trainer.compare.outcomes import behaviour as task_behaviour
from trainer.errors import InputError
from trainer.reading import Node
from trainer.rollout.traces import is_complete, score

SAMPLED = "sampled tokens"
# What arms are compared in: times would differ from run to run, prompts from text to text.
COMPARED = (
    "reward", "r_success", "r_type", "r_att", "r_option", "r_price", "r_loose", "steps",
    "completion_tokens", "protocol_error_rate", "policy_failure_rate", "invalid_action_rate",
)  # fmt: skip
STEPS_A_UNIT = 5  # step files that one process reads at a time


@dataclass(frozen=True, slots=True)
class Played:
    """One evaluation, read. ``values`` is None where nothing was scored."""

    episodes: list[Behaviour]
    values: Arm | None


def latest(path: Path) -> Iterator[dict[str, Any]]:
    """The last record of every episode of an evaluation. A torn last line is skipped."""
    found: dict[str, dict[str, Any]] = {}
    with path.open("rb") as handle:
        for trace in _parsed(path, handle):
            found[trace["episode_id"]] = trace
    yield from found.values()


def _parsed(path: Path, lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Each line as a value. Raises InputError for damage before the last line.

    A run holds tens of thousands of traces; parsing them is most of an analysis.
    """
    for number, line in enumerate(lines, 1):
        if not line.endswith(b"\n"):
            return
        try:
            yield orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise InputError(f"line {number} is not valid JSON: {error}", file=path) from error


def read_all(reader: Reader, evaluations: Sequence[str], rounds: Sequence[str]) -> Traces:
    """Every evaluation (by folder) and the training of every round, on all cores.

    Folders without traces are left out. Raises InputError for damage.
    """
    folders = [f for f in evaluations if reader.has(f"{f}/traces.jsonl")]
    units: list[list[Path]] = [[reader.note(f"{f}/traces.jsonl")] for f in folders]
    owners: list[str] = []
    for name in rounds:
        files = sorted((reader.root / name / "train" / "steps").glob("step-*.jsonl.gz"))
        for start in range(0, len(files), STEPS_A_UNIT):
            units.append(files[start : start + STEPS_A_UNIT])
            owners.append(name)
    made = in_order(_unit, units)
    training: dict[str, list[Behaviour]] = {}
    for name, played in zip(owners, made[len(folders) :], strict=True):
        training.setdefault(name, []).extend(played.episodes)
    return Traces(dict(zip(folders, made, strict=False)), training)


@dataclass(frozen=True, slots=True)
class Traces:
    """All traces of a run, read: evaluations by folder, training by round."""

    evaluations: dict[str, Played]
    training: dict[str, list[Behaviour]]


def _unit(paths: list[Path]) -> Played:
    if paths[0].suffix == ".gz":
        return Played([_unlabelled(t) for path in paths for t in _training_traces(path)], None)
    return _evaluation(paths[0])


def _evaluation(path: Path) -> Played:
    episodes: list[Behaviour] = []
    tasks: dict[int, list[dict[str, float]]] = {}
    for trace in latest(path):
        episodes.append(behaviour(trace))
        reward = score(trace["final"]) if is_complete(trace) else None
        if reward is not None and trace["error"] is None:
            values = {**reward, **task_behaviour(Node(trace, path))}
            kept = {name: values[name] for name in COMPARED if name in values}
            tasks.setdefault(trace["job"]["task_id"], []).append(kept)
    return Played(episodes, arm_of("", tasks) if tasks else None)


def _training_traces(path: Path) -> Iterator[dict[str, Any]]:
    """The training episodes of a step, without the full-skill retries."""
    for trace in _parsed(path, gzip.decompress(path.read_bytes()).splitlines(keepends=True)):
        skills = (trace.get("provenance") or {}).get("skills") or {}
        if not skills.get("diagnostic_full_skill"):
            yield trace


def _unlabelled(trace: dict[str, Any]) -> Behaviour:
    """Nobody asks for the path of a training episode, and there are many."""
    found = behaviour(trace)
    found.labels = []
    return found


def population(
    name: str, split: str, number: int | None, folder: str, played: Played
) -> Population:
    """The behaviour of one evaluation."""
    source = f"{folder}/traces.jsonl"
    return Population(name, split, number, played.episodes, SAMPLED, source)


def training_population(folder: str, number: int, episodes: Sequence[Behaviour]) -> Population:
    """The behaviour of one round's training."""
    source = f"{folder}/train/steps/"
    return Population(f"train_r{number}", "train", number, episodes, SAMPLED, source)


def named(values: Arm, name: str) -> Arm:
    """The arm under the name of its evaluation."""
    return replace(values, name=name)
