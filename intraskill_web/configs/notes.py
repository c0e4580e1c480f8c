"""What a configuration means for the power of a gate, while it is being written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from intraskill_web.gates.planning import typical_error
from trainer.errors import InputError

CANDIDATES = 6  # the analyst's default; a launch names its own
TASKS = 400  # as published, where a gate plays the tasks of the bare evaluation
MOST = 64  # slots that the planner is asked about


def power_note(kind: str, new: Mapping[str, Any], old: Mapping[str, Any] | None) -> str:
    """How the standard error of a typical effect changes; empty where no gate is described."""
    if kind != "gate":
        return ""
    now, before = _error(new), _error(old) if old else None
    if now is None:
        return ""
    slots, tasks = _slots(new), _tasks(new)
    if before is None or before == now:
        text = _(
            "With up to %(slots)s slots and %(tasks)s tasks the standard error of a typical effect "
            "is %(se).3f of a task's standard deviation."
        )
    else:
        text = _(
            "With up to %(slots)s slots and %(tasks)s tasks the standard error of a typical effect "
            "goes from %(before).3f to %(se).3f of a task's standard deviation."
        )
    return text % {"slots": slots, "tasks": tasks, "se": now, "before": before or 0.0}


def _slots(document: Mapping[str, Any]) -> int:
    return min(int(document["active_skill_budget"]) + CANDIDATES, MOST)


def _tasks(document: Mapping[str, Any]) -> int:
    return int(document["tasks"] or TASKS)


def _error(document: Mapping[str, Any]) -> float | None:
    kept = _slots(document) - CANDIDATES
    try:
        rewrites = (0,) * max(kept, 1)
        return typical_error(rewrites, CANDIDATES, _tasks(document), str(document["profile"]))
    except InputError:
        return None
