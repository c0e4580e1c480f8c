"""In which order the training tasks come, and the file that lists them.

Group ``g`` plays the ``g``-th task of an endless sequence: every epoch holds each task once, in an
order that depends on the seed and the epoch alone. The task file is the published JSON lines form
(training.md §2.4).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from trainer.canonical import sha256_file
from trainer.errors import InputError
from trainer.files import read_json, write_text

TASK_SCHEMA = "shopsimrl-slime-tasks-v1"


class TaskOrder:
    """The endless sequence of training tasks."""

    def __init__(self, tasks: Sequence[int], seed: int) -> None:
        if not tasks:
            raise InputError("there is no task to train on", field="tasks")
        self._tasks = tuple(tasks)
        self._seed = seed
        self._epoch = lru_cache(maxsize=2)(self._order)

    def task(self, group_index: int) -> int:
        """The task of a group."""
        epoch, place = divmod(group_index, len(self._tasks))
        return self._epoch(epoch)[place]

    def _order(self, epoch: int) -> tuple[int, ...]:
        def key(task: int) -> bytes:
            return hashlib.sha256(f"{self._seed}:epoch:{epoch}:{task}".encode()).digest()

        return tuple(sorted(self._tasks, key=key))


def prepare_data(split_file: Path, split: str, out: Path) -> dict[str, Any]:
    """Write the task file of a split and return what was written.

    Raises InputError when the split file is not one or does not hold the split.
    """
    identity, task_ids = read_split(split_file, split)
    lines = [
        json.dumps(
            {
                "prompt": str(task_id),
                "metadata": {"schema_version": TASK_SCHEMA, "task_id": task_id, "split": split},
            },
            ensure_ascii=False,
            separators=(",", ":"),
        )
        + "\n"
        for task_id in task_ids
    ]
    write_text(out, "".join(lines))
    return {
        "schema_version": TASK_SCHEMA,
        "output_path": str(out),
        "split": identity,
        "records": len(task_ids),
        "sha256": sha256_file(out),
    }


def read_split(split_file: Path, split: str) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Identity and task ids of one split of a split file, ids in file order."""
    document = read_json(split_file)
    splits = document.get("splits") if isinstance(document, dict) else None
    if not isinstance(splits, dict):
        raise InputError("must be an object", file=split_file, field="splits")
    if split not in splits:
        raise InputError(
            "unknown split",
            file=split_file,
            field="splits",
            value=split,
            remedy=f"Known splits: {', '.join(splits)}",
        )
    block = splits[split]
    if "task_ids" in block:
        task_ids = block["task_ids"]
    elif {"start", "end"} <= block.keys():
        task_ids = list(range(block["start"], block["end"]))
    else:
        raise InputError(
            "needs task_ids, or start and end", file=split_file, field=f"splits.{split}"
        )
    where = f"splits.{split}.task_ids"
    for task_id in task_ids:
        if type(task_id) is not int or task_id < 0:
            raise InputError(
                "must be non-negative integers", file=split_file, field=where, value=task_id
            )
    if len(set(task_ids)) != len(task_ids):
        raise InputError("must be unique", file=split_file, field=where)
    persona = block.get("persona")
    if persona not in (True, False, None):
        raise InputError(
            "must be true, false or null",
            file=split_file,
            field=f"splits.{split}.persona",
            value=persona,
        )
    identity = {
        "name": split,
        "source_path": str(split_file),
        "split_version": document.get("version") or document.get("schema_version"),
        "persona": persona,
        "task_count": len(task_ids),
    }
    return identity, tuple(task_ids)


def read_task_data(path: Path) -> tuple[int, ...]:
    """Task ids of a prepared file. Raises InputError naming the first line that breaks a rule."""
    task_ids: list[int] = []
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError(
            "no such task file", file=path, remedy="Write it with `prepare-data`"
        ) from error
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            task_ids.append(_task_of_line(path, number, line))
    if len(set(task_ids)) != len(task_ids):
        raise InputError("a task appears twice", file=path)
    return tuple(task_ids)


def _task_of_line(path: Path, number: int, line: str) -> int:
    where = f"line {number}"
    try:
        record = json.loads(line)
        metadata = record["metadata"]
        task_id, split = metadata["task_id"], metadata["split"]
        schema, prompt = metadata["schema_version"], record["prompt"]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise InputError(f"not a task record: {error!r}", file=path, field=where) from error
    if schema != TASK_SCHEMA:
        raise InputError("another schema", file=path, field=where, value=schema)
    if split != "train":
        raise InputError("only train tasks may be trained on", file=path, field=where, value=split)
    if type(task_id) is not int or prompt != str(task_id):
        raise InputError("prompt and task_id disagree", file=path, field=where, value=prompt)
    return task_id
