"""Which files at or under a path hold episodes, and to what they belong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from intraskill_web.episodes.prepare import parse
from intraskill_web.experiments.models import Experiment
from jobs.episodes.lines import LINE_FILES, open_text
from jobs.episodes.take import Source
from jobs.mirror.folders import EVALUATIONS
from trainer.errors import InputError
from trainer.files import read_json, read_jsonl
from trainer.rollout.traces import SCHEMA

DOCUMENT = re.compile(r"rollout-\d+\.json|full-skill-retry\.json")
GROUP = re.compile(r"group-(\d{9})")
LOOKED_AT = 5  # lines of a file; one of them must be a trace


def sources(path: Path, experiment: Experiment) -> Iterator[Source]:
    """Every file of episodes at or under ``path``, in order of their names."""
    rounds = [(r.pk, r.folder.resolve()) for r in experiment.rounds.all()]
    run = experiment.folder.resolve()
    for file in sorted(_files(path)):
        yield _source(file.resolve(), run, rounds)


def _files(path: Path) -> Iterator[Path]:
    candidates = [path] if path.is_file() else path.rglob("*.json*")
    for file in candidates:
        if file.name.endswith(LINE_FILES):
            if _holds_traces(file):
                yield file
        elif DOCUMENT.fullmatch(file.name) and not (file.parent.parent / "steps").is_dir():
            yield file  # beside ``steps`` the same episodes stand there once more


def _holds_traces(file: Path) -> bool:
    """Whether one of the first lines is a trace; files of other things are no business of ours."""
    try:
        with open_text(file) as handle:
            for _ in range(LOOKED_AT):
                try:
                    value = parse(handle.readline())
                except InputError:
                    continue
                if isinstance(value, Mapping) and value.get("schema_version") == SCHEMA:
                    return True
    except (OSError, EOFError):
        return file.name == "traces.jsonl"
    return False


def _source(file: Path, run: Path, rounds: list[tuple[int, Path]]) -> Source:
    """Files of the run folder are named relative to it; others with their whole path."""
    path = file.relative_to(run).as_posix() if file.is_relative_to(run) else str(file)
    for round_id, folder in rounds:
        if file.is_relative_to(folder):
            inside = file.parent.relative_to(folder).as_posix()
            purpose, arm = EVALUATIONS.get(inside, ("", ""))
            return Source(file, path, round_id, purpose, arm, _groups(file))
    return Source(file, path, groups=_groups(file))


def _groups(file: Path) -> dict[int, Mapping[str, Any]]:
    """What is known of a file's groups: ``groups.jsonl``, or ``triage.json`` beside it."""
    if file.parent.name == "steps":
        lines = read_jsonl(file.parent.parent / "groups.jsonl")
        return {line["group_index"]: line for line in lines}
    match, triage = GROUP.fullmatch(file.parent.name), file.parent / "triage.json"
    if match is None or not triage.is_file():
        return {}
    found = read_json(triage)
    return {int(match[1]): found} if isinstance(found, dict) else {}
