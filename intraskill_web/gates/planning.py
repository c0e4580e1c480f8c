"""The planner panel: what more slots or tasks would do to the standard error of a chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median

from intraskill_web.core.parameters import whole
from intraskill_web.gates.models import Contribution, GateRun
from intraskill_web.gates.whatif import layout_of
from trainer.errors import InputError
from trainer.gate.planner import DETECTABLE, imagined_layout, power_report

SLOTS = range(1, 65)
TASKS = range(20, 2001)
MORE = 5  # slots that the panel adds when nothing is asked


@dataclass(frozen=True, slots=True)
class Plan:
    """Now and then. Standard errors and detectable effects are None where the gate has none."""

    slots: int
    tasks: int
    slots_now: int
    tasks_now: int
    se_now: float | None
    se: float | None
    mde: float | None
    ratio: float

    @property
    def percent(self) -> str:
        """How much the standard error changes, signed."""
        return f"{(self.ratio - 1) * 100:+.0f} %".replace("-", "\u2212")


def plan(query: Mapping[str, str], gate: GateRun, rows: Sequence[Contribution]) -> Plan | None:
    """The panel for ``?slots=&tasks=``; None where a design cannot be told from the rows. Raises
    ParameterError.

    What is typical now is the median of the gate's own standard errors, those of the forest; the
    ratio of two imagined designs says how it changes.
    """
    layout = layout_of(rows)
    tasks_now = gate.observations or gate.requested
    if not tasks_now or not layout.slots:
        return None
    now = len(layout.slots)
    slots = whole(query, "slots", min(now + MORE, SLOTS[-1]), among=SLOTS)
    tasks = whole(query, "tasks", max(TASKS[0], min(tasks_now, TASKS[-1])), among=TASKS)
    current = sum(slot.old_version_id is not None for slot in layout.slots)
    rewrites = tuple(len(s.versions) - 1 for s in layout.slots if s.old_version_id is not None)
    kept = min(current, slots)
    profile = "standard" if gate.profile == "standard" else "published"
    try:
        a = typical_error(rewrites, now - current, tasks_now, profile)
        b = typical_error(rewrites[:kept], slots - kept, tasks, profile)
    except InputError:
        return None
    seen = [row.se for row in rows if row.se is not None]
    se_now = median(seen) if seen else None
    se = None if se_now is None else se_now * b / a
    return Plan(
        slots=slots,
        tasks=tasks,
        slots_now=now,
        tasks_now=tasks_now,
        se_now=se_now,
        se=se,
        mde=None if se is None else DETECTABLE * se,
        ratio=b / a,
    )


@lru_cache(maxsize=256)
def typical_error(rewrites: tuple[int, ...], additions: int, tasks: int, profile: str) -> float:
    """The median standard error of the columns of a design, in units of the task's SD."""
    layout = imagined_layout(len(rewrites), rewrites, additions)
    report = power_report(layout, tasks=tasks, sd=1.0, profile=profile)
    return float(median(report["se"].values()))
