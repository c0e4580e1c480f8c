"""What this installation sees at once: the plan's numbers, disk, queue and workers."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from intraskill_web.core import formats
from intraskill_web.core.labels import takes
from intraskill_web.experiments.models import Experiment
from intraskill_web.monitoring.preflight.items import Item
from jobs import queue
from jobs.placement import KINDS
from jobs.queue import QueueStatus

MIN_FREE_BYTES = 2 * 1024**3
ROOM = 2.0  # times what the latest round took


def machine_items(
    config: Mapping[str, Any], experiment: Experiment, number: int, planned: int | None = None
) -> list[Item]:
    """The items that cost nothing, in the order of the checklist; ``config`` is the round's."""
    status = queue.status()
    return [
        plan_item(config, number, planned or experiment.rounds_planned),
        disk_item(experiment.folder, number),
        queue_item(status),
        workers_item(status),
    ]


def plan_item(config: Mapping[str, Any], number: int, planned: int) -> Item:
    """The arithmetic of a round: what is rolled out, what is kept, what an update gets."""
    train = config.get("train", {})
    rollout, optimiser = train.get("rollout", {}), train.get("optimiser", {})
    steps, groups = int(train.get("steps", 0)), int(rollout.get("groups_per_wave", 0))
    each = int(rollout.get("episodes_per_group", 0))
    kept = int(rollout.get("groups_kept", 0)) * each
    updates = int(optimiser.get("updates_per_step", 1))
    detail = ngettext(
        "round %(n)d, %(place)d of %(planned)d: %(steps)d steps × %(groups)d groups × %(each)d "
        "episodes = %(all)s; %(kept)d kept a step for %(updates)d update of %(batch)s",
        "round %(n)d, %(place)d of %(planned)d: %(steps)d steps × %(groups)d groups × %(each)d "
        "episodes = %(all)s; %(kept)d kept a step for %(updates)d updates of %(batch)s",
        updates,
    ) % {
        "n": number,
        "place": number + 1,
        "planned": planned,
        "steps": steps,
        "groups": groups,
        "each": each,
        "all": formats.count(steps * groups * each),
        "kept": kept,
        "updates": updates,
        "batch": f"{kept / updates:g}" if updates else formats.UNKNOWN,
    }
    if number >= planned:
        remedy = _("Plan one round more.")
        return Item("plan", "failed", detail, remedy)
    return Item("plan", "passed", detail)


def disk_item(folder: Path, number: int) -> Item:
    """Free space where the run lies, against what the latest round took."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    last = folder / f"round-{number - 1:03d}"
    took = sum(file.stat().st_size for file in last.rglob("*") if file.is_file()) if number else 0
    wanted = max(MIN_FREE_BYTES, int(ROOM * took))
    said = _("%(free)s free, %(wanted)s wanted")
    if took:
        said = _("%(free)s free, %(wanted)s wanted; the round before took %(took)s")
    detail = said % {
        "free": formats.size(free), "wanted": formats.size(wanted), "took": formats.size(took),
    }  # fmt: skip
    if free >= wanted:
        return Item("disk", "passed", detail)
    remedy = _("Free at least %(size)s.") % {"size": formats.size(wanted - free)}
    return Item("disk", "failed", detail, remedy)


def queue_item(status: QueueStatus) -> Item:
    """A queue that is down delays a start and loses nothing."""
    if status.up:
        return Item("queue", "passed", _("%(n)d waiting") % {"n": status.waiting})
    return Item(
        "queue", "warning", status.error,
        _("A start waits until the queue is back; manage.py up starts one."),
    )  # fmt: skip


def workers_item(status: QueueStatus) -> Item:
    """Without a worker for stages a start waits."""
    of_stages = [worker for worker in status.workers if set(worker.kinds) & set(KINDS)]
    absent = takes(set(KINDS).difference(*(worker.kinds for worker in of_stages)))
    if not absent:
        hosts = ", ".join(sorted({worker.host for worker in of_stages}))
        return Item(
            "workers", "passed", _("%(n)d on %(hosts)s") % {"n": len(of_stages), "hosts": hosts}
        )
    return Item(
        "workers", "warning", _("none for %(kinds)s") % {"kinds": absent},
        _("A start waits for one: manage.py up here, or manage.py worker on a GPU host."),
    )  # fmt: skip
