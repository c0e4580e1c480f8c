"""Builds the persona splits from a cleaned catalogue (environment.md §1.8).

Tasks that share a product, a text, a persona or a user are linked and stay together. Groups are
ranked by a hash and whole groups are chosen so that test and val have exactly their size."""

from __future__ import annotations

import hashlib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainer.errors import InputError
from trainer.shop.personas import persona_fingerprint
from trainer.shop.splits import SCHEMA_VERSION, task_ids_sha256

POLICY_VERSION = "exact-linked-components-v1"
NORMALISATION = "unicode-nfkc-casefold-whitespace-v1"
GROUP_KEYS = ("asin", "instruction_simple", "instruction", "persona_fingerprint", "user_id")
_USER_KEYS = frozenset({"userid", "user_id", "用户id", "用户_id"})
_ORDER = ("test", "val", "train")


@dataclass(frozen=True, slots=True)
class SplitPolicy:
    """Sizes and seed of the construction; the defaults are the published ones."""

    seed: int = 20260829
    validation_size: int = 400
    test_size: int = 400
    held_out_max_group_size: int = 20
    test_excluded_task_ids: tuple[int, ...] = ()

    def record(self) -> dict[str, Any]:
        return {
            "version": POLICY_VERSION,
            "seed": self.seed,
            "allocation_order": list(_ORDER),
            "validation_size": self.validation_size,
            "test_size": self.test_size,
            "held_out_max_group_size": self.held_out_max_group_size,
            "test_excluded_task_ids": list(self.test_excluded_task_ids),
            "normalization": NORMALISATION,
            "group_keys": list(GROUP_KEYS),
        }


@dataclass(frozen=True, slots=True)
class PersonaTask:
    """What decides the links of one task. ``source`` is ``persona_eval`` or ``persona_train``."""

    task_id: int
    source: str
    keys: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Group:
    """Tasks that must not be separated."""

    task_ids: tuple[int, ...]
    id: str = field(init=False)

    def __post_init__(self) -> None:
        text = ",".join(map(str, self.task_ids))
        digest = hashlib.sha256(text.encode("ascii")).hexdigest()
        object.__setattr__(self, "id", f"group-{digest[:16]}")


def persona_tasks(records: Iterable[Mapping[str, Any]]) -> Iterator[PersonaTask]:
    """The persona tasks of cleaned records; one without target attributes can never be loaded."""
    for record in records:
        persona = record.get("user_persona")
        if not persona:
            continue
        for task in record["instructions"]:
            if not task.get("attributes"):
                continue
            yield PersonaTask(
                task_id=task["task_id"],
                source=f"persona_{record.get('tag')}",
                keys={
                    "asin": normalise(record["asin"]),
                    "instruction_simple": normalise(task["instruction_simple"]),
                    "instruction": normalise(task["instruction"]),
                    "persona_fingerprint": persona_fingerprint(persona),
                    "user_id": user_id(persona),
                },
            )


def normalise(text: str) -> str:
    """NFKC, casefold, whitespace collapsed and stripped."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def user_id(persona: Mapping[str, Any]) -> str:
    """The persona's user, normalised; empty when it names none."""
    for key, value in persona.items():
        if normalise(str(key)).replace(" ", "") in _USER_KEYS:
            return normalise(str(value))
    return ""


def linked_groups(tasks: Iterable[PersonaTask]) -> list[Group]:
    """Connected components of tasks that share any non-empty key."""
    parents: dict[int, int] = {}

    def find(task_id: int) -> int:
        while parents[task_id] != task_id:
            parents[task_id] = parents[parents[task_id]]
            task_id = parents[task_id]
        return task_id

    owners: dict[tuple[str, str], int] = {}
    for task in tasks:
        parents[task.task_id] = task.task_id
        for key in task.keys.items():
            if key[1]:
                owner = owners.setdefault(key, task.task_id)
                parents[find(task.task_id)] = find(owner)
    members: defaultdict[int, list[int]] = defaultdict(list)
    for task_id in parents:
        members[find(task_id)].append(task_id)
    return [Group(tuple(sorted(ids))) for ids in members.values()]


def choose(groups: Collection[Group], target: int, policy: SplitPolicy, split: str) -> list[Group]:
    """Whole groups with exactly ``target`` tasks. Raises InputError when there are none."""
    blocked = set(policy.test_excluded_task_ids) if split == "test" else set()
    ranked = sorted(groups, key=lambda group: _rank(policy.seed, split, group.id))
    came_from: dict[int, tuple[int, Group] | None] = {0: None}
    for group in ranked:
        size = len(group.task_ids)
        if size > policy.held_out_max_group_size or blocked.intersection(group.task_ids):
            continue
        for total in sorted(came_from, reverse=True):
            if total + size <= target and total + size not in came_from:
                came_from[total + size] = (total, group)
        if target in came_from:
            break
    else:
        if target not in came_from:
            raise InputError(
                f"no whole groups add up to {target} tasks",
                field=f"{split} size",
                value=max(came_from),
                remedy="Choose a smaller size or a larger held_out_max_group_size",
            )
    chosen = []
    step = came_from[target]
    while step is not None:
        chosen.append(step[1])
        step = came_from[step[0]]
    return chosen


def _rank(seed: int, split: str, group_id: str) -> str:
    return hashlib.sha256(f"{seed}:{split}:{group_id}".encode()).hexdigest()


def build_splits(
    tasks: Iterable[PersonaTask], policy: SplitPolicy, *, source: Mapping[str, Any]
) -> dict[str, Any]:
    """The whole split document. ``source`` names the files it was built from."""
    listed = list(tasks)
    sources = {task.task_id: task.source for task in listed}
    groups = linked_groups(listed)
    left = {group.id: group for group in groups}
    chosen: dict[str, list[Group]] = {}
    for name, size in (("test", policy.test_size), ("val", policy.validation_size)):
        chosen[name] = choose(left.values(), size, policy, name)
        for group in chosen[name]:
            del left[group.id]
    chosen["train"] = list(left.values())
    splits = {name: _split(name, chosen[name], sources) for name in ("train", "val", "test")}
    return {
        "schema_version": SCHEMA_VERSION,
        "version": SCHEMA_VERSION,
        "source": {**source, "persona_task_count": len(listed)},
        "policy": policy.record(),
        "grouping": _sizes(groups),
        "splits": splits,
        "checks": {**_checks(splits, sources, policy), "linked_groups_disjoint": _apart(chosen)},
    }


def _apart(chosen: Mapping[str, Collection[Group]]) -> bool:
    """Whether every linked group lies in one split."""
    ids = [group.id for groups in chosen.values() for group in groups]
    return len(ids) == len(set(ids))


def _split(name: str, groups: Collection[Group], sources: Mapping[int, str]) -> dict[str, Any]:
    task_ids = sorted(task_id for group in groups for task_id in group.task_ids)
    return {
        "persona": True,
        "role": name,
        "task_ids": task_ids,
        "task_count": len(task_ids),
        "task_ids_sha256": task_ids_sha256(task_ids),
        "source_split_counts": dict(sorted(Counter(sources[i] for i in task_ids).items())),
        **_sizes(groups),
    }


def _sizes(groups: Collection[Group]) -> dict[str, int]:
    return {
        "group_count": len(groups),
        "multi_task_group_count": sum(len(group.task_ids) > 1 for group in groups),
        "max_group_size": max((len(group.task_ids) for group in groups), default=0),
    }


def _checks(
    splits: Mapping[str, Mapping[str, Any]], sources: Mapping[int, str], policy: SplitPolicy
) -> dict[str, Any]:
    ids = [task_id for split in splits.values() for task_id in split["task_ids"]]
    excluded = set(policy.test_excluded_task_ids)
    return {
        "pairwise_task_disjoint": len(ids) == len(set(ids)),
        "complete_coverage": set(ids) == set(sources),
        "test_exclusions_respected": excluded.isdisjoint(splits["test"]["task_ids"]),
        "persona_task_count": len(sources),
    }
