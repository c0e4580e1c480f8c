"""The groups of a training round that wait for the analyst.

A group is pending when every sibling failed and its retry with the whole skill failed too. The
retry's trace is what the analyst reads; before that it is checked that it is what its label says.
Specification: training.md §4.7, gate-analysis.md §11.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.errors import InputError
from trainer.files import read_jsonl
from trainer.grpo.publish import RoundFolder, read_traces
from trainer.rollout.traces import is_complete
from trainer.skills.bank import SkillBank

PENDING = "full_skill_failure_pending_analysis"


@dataclass(frozen=True, slots=True)
class PendingGroup:
    """One group that waits: its line in ``groups.jsonl`` and the trace of its full-skill retry."""

    line: Mapping[str, Any]
    trace: Mapping[str, Any]


def group_lines(training_dir: Path) -> list[dict[str, Any]]:
    """Every group of the round. Raises InputError when the round has none on disk."""
    path = training_dir / "groups.jsonl"
    if not path.exists():
        raise InputError(
            "no groups of a training round", file=path, remedy="Run the training stage first"
        )
    return list(read_jsonl(path))


def pending_groups(training_dir: Path, bank: SkillBank) -> list[PendingGroup]:
    """The pending groups in order, each with its checked retry trace."""
    lines = [line for line in group_lines(training_dir) if line["classification"] == PENDING]
    folder = RoundFolder(training_dir)
    by_step: dict[int, list[dict[str, Any]]] = {}
    for line in lines:
        by_step.setdefault(line["step"], []).append(line)
    pending = []
    for step, waiting in by_step.items():
        path = folder.trace_file(step)
        wanted = {line["full_skill_retry"]["episode_id"] for line in waiting}
        traces = {t["episode_id"]: t for t in read_traces(path) if t["episode_id"] in wanted}
        for line in waiting:
            trace = traces.get(line["full_skill_retry"]["episode_id"])
            _check_retry(line, trace, bank, path)
            pending.append(PendingGroup(line, trace or {}))
    return pending


def _check_retry(
    line: Mapping[str, Any], trace: Mapping[str, Any] | None, bank: SkillBank, path: Path
) -> None:
    """Refuse a trace that is not the failed full-skill retry its group speaks of."""
    where = f"group {line['group_index']}"
    if trace is None:
        raise InputError("the retry has no trace", file=path, field=where)
    if not is_complete(trace):
        raise InputError("the retry was not completed", file=path, field=where)
    if trace["job"]["split"] != "train":
        raise InputError(
            "only train episodes may be analysed",
            file=path,
            field=where,
            value=trace["job"]["split"],
        )
    if trace["final"]["reward_detail"].get("r_success") != 0:
        raise InputError("the retry did not fail", file=path, field=where)
    if trace["provenance"]["skills"].get("diagnostic_full_skill") is not True:
        raise InputError("not a diagnostic episode", file=path, field=where)
    shown = [(s["skill_id"], s["version"], s["content"]) for s in trace["selected_skills"]]
    active = [(chunk.skill_id, chunk.version, chunk.content) for chunk in bank.chunks]
    if shown != active:
        raise InputError(
            "the retry showed other chunks than the bank holds",
            file=path,
            field=where,
            value=[skill_id for skill_id, _, _ in shown],
            remedy="Name the bank that the round was trained on",
        )
