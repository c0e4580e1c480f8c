"""The groups of a training round that wait for the analyst, each with the trace that stands for it.

A group waits when every sibling failed and its retry with the whole skill failed too; the retry's
trace is then read. With the wider trigger a group also waits that rarely succeeds and hardly
varies; its first failed sibling stands for it. Before a trace is used it is checked that it is what
its label says. Specification: training.md §4.7, gate-analysis.md §11.1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, pvariance
from typing import Any, Literal

from trainer.analyst.settings import TriggerSettings
from trainer.errors import InputError
from trainer.files import read_jsonl
from trainer.grpo.publish import RoundFolder, read_traces
from trainer.grpo.step import episode_id
from trainer.rollout.traces import is_complete
from trainer.skills.bank import SkillBank

PENDING = "full_skill_failure_pending_analysis"
Trigger = Literal["all_wrong", "low_mean", "cold_start"]
Line = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """One group that waits: its line in ``groups.jsonl``, the failed trace, and why it waits."""

    line: Line
    trace: Mapping[str, Any]
    trigger: Trigger

    @property
    def source(self) -> str:
        """The id of the trace, under which its card is filed."""
        return str(self.trace["episode_id"])

    @property
    def task_id(self) -> int:
        return int(self.trace["job"]["task_id"])


def group_lines(training_dir: Path) -> list[dict[str, Any]]:
    """Every group of the round; of a step that was done twice, the later one.

    Raises InputError when the round has no groups on disk.
    """
    path = training_dir / "groups.jsonl"
    if not path.exists():
        raise InputError(
            "no groups of a training round", file=path, remedy="Run the training stage first"
        )
    latest: dict[int, dict[str, Any]] = {row["group_index"]: row for row in read_jsonl(path)}
    return list(latest.values())


def trigger_of(line: Line, settings: TriggerSettings) -> Trigger | None:
    """Why a group is looked at, or None when it is not."""
    if line["classification"] == PENDING:
        return "all_wrong"
    if not settings.low_mean or line["all_wrong"] or not all(line["scored"]):
        return None
    successes, rewards = line["successes"], line["rewards"]
    rare = fmean(successes) <= settings.mean_at_most
    still = pvariance(rewards) <= settings.variance_at_most
    enough = len(successes) >= settings.minimum_episodes
    return "low_mean" if rare and still and enough else None


def waiting_cases(
    training_dir: Path,
    bank: SkillBank,
    settings: TriggerSettings,
    *,
    known: Collection[int] = (),
) -> list[Case]:
    """The groups that wait, in order; ``known`` are group indices that need not be read again.

    Raises InputError when a trace is missing or not what its group says.
    """
    by_step: dict[int, list[tuple[Line, Trigger]]] = {}
    for line in group_lines(training_dir):
        trigger = trigger_of(line, settings)
        if trigger is not None and line["group_index"] not in known:
            by_step.setdefault(line["step"], []).append((line, trigger))
    folder = RoundFolder(training_dir)
    cases = []
    for step, waiting in by_step.items():
        path = folder.trace_file(step)
        wanted = {source_of(group, trigger) for group, trigger in waiting}
        found = {t["episode_id"]: t for t in read_traces(path) if t["episode_id"] in wanted}
        for group, trigger in waiting:
            trace = found.get(source_of(group, trigger))
            cases.append(Case(group, _checked(group, trigger, trace, bank, path), trigger))
    return cases


def source_of(line: Line, trigger: Trigger) -> str:
    """The episode that stands for a group."""
    if trigger == "all_wrong":
        return str(line["full_skill_retry"]["episode_id"])
    failed = line["successes"].index(False)
    return episode_id(line["group_index"], line["sample_indices"][failed], retry=False)


def _checked(
    line: Line, trigger: Trigger, trace: Mapping[str, Any] | None, bank: SkillBank, path: Path
) -> Mapping[str, Any]:
    """The trace, once it is known to be the failed episode that its group speaks of."""
    where = f"group {line['group_index']}"

    def refuse(message: str, value: object = None, remedy: str | None = None) -> InputError:
        return InputError(message, file=path, field=where, value=value, remedy=remedy)

    if trace is None:
        raise refuse(f"the {_kind(trigger)} has no trace")
    if not is_complete(trace):
        raise refuse(f"the {_kind(trigger)} was not completed")
    if trace["job"]["split"] != "train":
        raise refuse("only train episodes may be analysed", trace["job"]["split"])
    if trace["final"]["reward_detail"].get("r_success") != 0:
        raise refuse(f"the {_kind(trigger)} did not fail")
    diagnostic = trace["provenance"]["skills"].get("diagnostic_full_skill") is True
    if trigger == "all_wrong" and not diagnostic:
        raise refuse("not a diagnostic episode")
    ids = None if trigger == "all_wrong" else line["treatment"]["skill_ids"]
    shown = [(s["skill_id"], s["version"], s["content"]) for s in trace["selected_skills"]]
    active = [
        (chunk.skill_id, chunk.version, chunk.content)
        for chunk in bank.chunks
        if ids is None or chunk.skill_id in ids
    ]
    if shown != active:
        raise refuse(
            f"the {_kind(trigger)} showed other chunks than the bank holds",
            [skill_id for skill_id, _, _ in shown],
            "Name the bank that the round was trained on",
        )
    return trace


def _kind(trigger: Trigger) -> str:
    return "retry" if trigger == "all_wrong" else "failed sibling"
