"""Groups in the making: one treatment for all siblings, and what follows once the last is done.

Siblings finish in any order and never wait for each other, because slime's own semaphore is held
while they run. Whoever completes the group leads: it plays the retry an all-wrong group is due and
labels the group. The curriculum of a group is the one its first sibling met, whatever happens to
the file meanwhile. Specification: training.md §3, §4.3, §4.7; distinct labels for groups that slime
cut off: §9.5.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from trainer.canonical import sha256_file
from trainer.engines.slime.play import ABORTED, EpisodeRollout
from trainer.grpo.filter import Decision
from trainer.grpo.groups import Group
from trainer.grpo.triage import Classification, classify, needs_retry
from trainer.skills.curriculum import Curriculum, load_curriculum
from trainer.skills.masks import Treatment, treatment

Label = Classification | Literal["aborted", "retry_aborted"]


class CurriculumFiles:
    """Frozen curricula by path, read again only when the file was replaced."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[int, int], str, Curriculum]] = {}

    def load(self, path: Path) -> Curriculum:
        """The curriculum in ``path``. Raises InputError when it is missing or was changed."""
        known = self._known.get(path)
        if known is not None and path.exists():
            stamp = _stamp(path)
            if known[0] == stamp or known[1] == sha256_file(path):
                self._known[path] = (stamp, known[1], known[2])
                return known[2]
        curriculum = load_curriculum(path)
        self._known[path] = (_stamp(path), sha256_file(path), curriculum)
        return curriculum


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


@dataclass(slots=True)
class OpenGroup:
    """A group whose episodes are being played."""

    group_index: int
    task_id: int
    size: int
    curriculum: Curriculum
    treatment: Treatment
    rollouts: dict[int, EpisodeRollout] = field(default_factory=dict)

    def report(self, sample_index: int, rollout: EpisodeRollout) -> bool:
        """Take in a finished episode; whether it was the last. Raises RuntimeError."""
        if sample_index in self.rollouts:
            raise RuntimeError(f"group {self.group_index}: sample {sample_index} came twice")
        self._check(sample_index, rollout)
        self.rollouts[sample_index] = rollout
        if len(self.rollouts) > self.size:
            raise RuntimeError(f"group {self.group_index}: more than {self.size} siblings")
        return len(self.rollouts) == self.size

    def _check(self, sample_index: int, rollout: EpisodeRollout) -> None:
        given = rollout.result.request.skills["assignment"]
        wanted = self.treatment.to_record(self.curriculum, self.group_index)
        if given != wanted:
            raise RuntimeError(
                f"group {self.group_index}: sample {sample_index} was treated as {given}, "
                f"its group as {wanted}"
            )

    def group(self) -> Group:
        """The finished group, ordered by sample index."""
        indices = tuple(sorted(self.rollouts))
        return Group(
            group_index=self.group_index,
            task_id=self.task_id,
            treatment=self.treatment,
            sample_indices=indices,
            outcomes=tuple(self.rollouts[index].result for index in indices),
        )


@dataclass(slots=True)
class FinishedRollouts:
    """A labelled group. ``decision`` is the filter's, as far as the filter alone can know it."""

    group: Group
    rollouts: tuple[EpisodeRollout, ...]
    curriculum: Curriculum
    retry: EpisodeRollout | None
    label: Label
    decision: Decision | None = None

    @property
    def aborted(self) -> bool:
        """slime's stop cut the group off: it says nothing about policy or shop."""
        return self.label in ("aborted", "retry_aborted")


class GroupTable:
    """The open and the finished groups of the present step."""

    def __init__(self, curricula: CurriculumFiles) -> None:
        self._curricula = curricula
        self.open_groups: dict[int, OpenGroup] = {}
        self.finished: dict[int, FinishedRollouts] = {}
        self.started: set[int] = set()

    def join(self, path: Path, group_index: int, *, task_id: int, size: int) -> OpenGroup:
        """The group a sibling belongs to, opened by the first. Raises RuntimeError."""
        self.started.add(group_index)
        entry = self.open_groups.get(group_index)
        if entry is None:
            curriculum = self._curricula.load(path)
            entry = OpenGroup(
                group_index, task_id, size, curriculum, treatment(curriculum, group_index)
            )
            self.open_groups[group_index] = entry
        if (entry.size, entry.task_id) != (size, task_id):
            raise RuntimeError(
                f"group {group_index}: siblings disagree: {entry.size} episodes of task "
                f"{entry.task_id}, now {size} of task {task_id}"
            )
        return entry

    def close(self, finished: FinishedRollouts) -> None:
        """Move a group from the open to the finished ones."""
        index = finished.group.group_index
        self.open_groups.pop(index, None)
        self.finished[index] = finished

    def clear(self) -> tuple[dict[int, FinishedRollouts], dict[int, OpenGroup], int]:
        """End the step: finished groups, groups that were cut off, and how many were started."""
        ended = self.finished, self.open_groups, len(self.started)
        self.finished, self.open_groups, self.started = {}, {}, set()
        return ended


async def finish_group(
    entry: OpenGroup,
    play_retry: Callable[[], Awaitable[EpisodeRollout]],
    *,
    retry_enabled: bool,
    stopping: Callable[[], bool],
) -> FinishedRollouts:
    """Label a complete group, after the retry that it may be due.

    ``stopping`` says whether slime has asked to stop: then no retry is begun.
    """
    group = entry.group()
    rollouts = tuple(entry.rollouts[index] for index in group.sample_indices)

    def finished(retry: EpisodeRollout | None, label: Label) -> FinishedRollouts:
        return FinishedRollouts(group, rollouts, entry.curriculum, retry, label)

    if any(rollout.failure == ABORTED for rollout in rollouts):
        return finished(None, "aborted")
    if not needs_retry(group, retry_enabled=retry_enabled):
        return finished(None, classify(group, None, retry_enabled=retry_enabled))
    if stopping():
        return finished(None, "retry_aborted")
    retry = await play_retry()
    if retry.failure == ABORTED:
        return finished(retry, "retry_aborted")
    return finished(retry, classify(group, retry.result, retry_enabled=True))
