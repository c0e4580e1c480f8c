"""Evaluation orders: which checkpoints and banks there are, and what people may ask for.

The test split is guarded: an order on it needs the experiment's name typed and a reason, and both
stand in the audit trail. What an order played is read by analyses only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from intraskill_web.core import audit
from intraskill_web.core.handed_in import this_host
from intraskill_web.experiments.models import Experiment
from intraskill_web.reports.models import EvaluationOrder
from jobs.queue import enqueue_work_on_commit
from trainer.errors import InputError

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

SPLITS = ("test", "val")
MOST_REPEATS = 16


@dataclass(frozen=True, slots=True)
class Choice:
    """A checkpoint or a bank; ``path`` is relative to the run's folder."""

    key: str
    label: str
    path: str


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm of an order. ``bank`` is empty for a bare arm."""

    name: str
    step: int
    bank: str
    checkpoint: str
    skillbank: str


def checkpoints(experiment: Experiment) -> list[Choice]:
    """The checkpoints that lie in the run folder, by training step."""
    steps = int(experiment.config.get("train", {}).get("steps", 0))
    found = [Choice("0", _("start"), "start/checkpoint")]
    for path in sorted(experiment.folder.glob("round-*/train/checkpoint/checkpoint.json")):
        number = int(path.parents[2].name[-3:])
        step = (number + 1) * steps
        label = _("step %(n)d") % {"n": step}
        found.append(Choice(str(step), label, _relative(experiment, path.parent)))
    return [c for c in found if (experiment.folder / c.path / "checkpoint.json").is_file()]


def banks(experiment: Experiment) -> list[Choice]:
    """S0, S1, … as far as they lie in the run folder, the bare prompt first."""
    found = {}
    for path in sorted(experiment.folder.glob("round-*/skillbank.json")):
        found[int(path.parent.name[-3:])] = path
    for path in sorted(experiment.folder.glob("round-*/gate/selected_skillbank.json")):
        found[int(path.parents[1].name[-3:]) + 1] = path
    rows = [
        Choice(f"S{n}", f"S{n}", _relative(experiment, path)) for n, path in sorted(found.items())
    ]
    return [Choice("", _("no text"), ""), *rows]


def _relative(experiment: Experiment, path: Path) -> str:
    return path.relative_to(experiment.folder).as_posix()


def four_conditions(experiment: Experiment) -> list[Arm]:
    """Start and end, bare and with the bank of that time. Raises InputError before both exist."""
    points, texts = checkpoints(experiment), banks(experiment)[1:]
    if len(points) < 2 or not texts:
        raise InputError(_("Needs the starting checkpoint and one that was trained"), field="arms")
    first, last = points[0], points[-1]
    return [
        _arm("base_free", first, None),
        _arm("base_s0", first, texts[0]),
        _arm("final_free", last, None),
        _arm("final_st", last, texts[-1]),
    ]


def chosen_arm(experiment: Experiment, step: str, bank: str) -> Arm:
    """One arm by the keys of its checkpoint and bank. Raises InputError for unknown ones."""
    point = next((c for c in checkpoints(experiment) if c.key == step), None)
    text = next((c for c in banks(experiment) if c.key == bank), None)
    if point is None:
        raise InputError(_("There is no such checkpoint"), field="checkpoint", value=step)
    if text is None:
        raise InputError(_("There is no such bank"), field="bank", value=bank)
    return _arm(f"step{step}-{bank.lower() or 'bare'}", point, text if bank else None)


def _arm(name: str, point: Choice, text: Choice | None) -> Arm:
    bank, path = ("", "") if text is None else (text.key, text.path)
    return Arm(name, int(point.key), bank, point.path, path)


@transaction.atomic
def plan_order(
    experiment: Experiment,
    arms: Sequence[Arm],
    *,
    split: str,
    actor: AbstractBaseUser | None,
    limit: int | None = None,
    repeats: int = 1,
) -> EvaluationOrder:
    """Write an order down without running it. Raises InputError for what cannot be played."""
    if experiment.engine != "local" or "imported" in experiment.config:
        raise InputError(_("Only runs of the embedded engine can be played here"), field="engine")
    if split not in SPLITS:
        raise InputError(_("must be test or val"), field="split", value=split)
    if not 1 <= repeats <= MOST_REPEATS:
        raise InputError(
            _("must be between 1 and %(n)d") % {"n": MOST_REPEATS}, field="repeats", value=repeats
        )
    if limit is not None and limit < 2:
        raise InputError(_("two tasks at least are needed"), field="limit", value=limit)
    if not arms:
        raise InputError(_("an order needs an arm"), field="arms")
    number = EvaluationOrder.objects.filter(experiment=experiment).count() + 1
    order = EvaluationOrder.objects.create(
        experiment=experiment,
        name=f"order-{number:03d}",
        split=split,
        arms=[asdict(arm) for arm in arms],
        limit=limit,
        repeats=repeats,
        owner_id=actor.pk if actor else None,
    )
    _record("order.plan", order, actor)
    return order


@transaction.atomic
def run_order(
    order: EvaluationOrder,
    *,
    actor: AbstractBaseUser | None,
    confirmed_name: str = "",
    reason: str = "",
) -> None:
    """Hand an order in, or hand it in again. Raises InputError when it runs, or is not confirmed.

    An order on the test split needs the experiment's name and a reason, the first time. One that
    lost its worker may be handed in again; its player ended with the worker.
    """
    found = EvaluationOrder.objects.select_for_update().get(pk=order.pk)
    if found.unfinished and not found.silent:
        raise InputError(_("The order is being played"), field="order", value=found.name)
    if found.state == "succeeded":
        raise InputError(_("The order is finished"), field="order", value=found.name)
    if found.split == "test" and not found.reason:
        if confirmed_name != found.experiment.name:
            raise InputError(
                _("Type the experiment's name to play the test split"), field="confirm",
                value=confirmed_name,
            )  # fmt: skip
        if not reason.strip():
            raise InputError(_("The test split needs a reason"), field="reason")
        found.reason = reason.strip()[:300]
    found.state, found.error, found.heartbeat_at = "requested", "", timezone.now()
    found.tries, found.host = 0, this_host()
    found.save()
    _record("order.run", found, actor)
    stamp = int(timezone.now().timestamp() * 1000)
    enqueue_work_on_commit(EvaluationOrder.JOB, found.pk, f"order-{found.pk}-{stamp}")


@transaction.atomic
def stop_order(order: EvaluationOrder, *, actor: AbstractBaseUser | None) -> None:
    """Ask a running order to stop; what it played stays. Raises InputError when it is not on."""
    found = EvaluationOrder.objects.select_for_update().get(pk=order.pk)
    if found.state not in ("requested", "running"):
        raise InputError(_("Nothing is running"), field="order", value=found.name)
    found.state = "stopped" if found.state == "requested" else "stopping"
    found.save()
    _record("order.stop", found, actor)


def _record(action: str, order: EvaluationOrder, actor: AbstractBaseUser | None) -> None:
    detail: dict[str, Any] = {
        "split": order.split,
        "arms": [arm["name"] for arm in order.arms],
        "repeats": order.repeats,
        "limit": order.limit,
    }
    if order.reason:
        detail["reason"] = order.reason
    audit.record(
        action, actor=actor, experiment=order.experiment.name, subject=order.name, **detail
    )
