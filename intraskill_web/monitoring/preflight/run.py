"""Runs the trainer's checks for an experiment's next round or a launch file, and keeps the report.

A report counts for the inputs it looked at: their hashes name it. Looking again at the same inputs
is free, so the checklist that a person read is the one that lets the round start.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings
from django.db import connection
from django.db.models import Q
from django.utils import timezone

from intraskill_web.experiments.models import Experiment
from intraskill_web.monitoring.models import Preflight
from intraskill_web.monitoring.preflight.inputs import (
    digest,
    inputs_of,
    key_of,
    next_round,
    own_settings,
    settings_of,
    target_of,
)
from intraskill_web.monitoring.preflight.items import Item, item_of
from intraskill_web.monitoring.preflight.launches import launch_of
from intraskill_web.monitoring.preflight.looks import alone, one_of_few
from intraskill_web.monitoring.preflight.machine import machine_items
from intraskill_web.monitoring.preflight.red import refusal
from trainer.errors import InputError
from trainer.files import read_json, write_text

TIMEOUT_S = 300
TRUST_S = 5.0  # a red report that somebody acts upon is looked at again when older
AHEAD_S = 60.0  # one that is red is looked at again so often by who opens a page
SHARED_S = 600.0  # a report of equal inputs counts for others while younger
FROZEN = "experiment.json"
SLIME = "slime"

logger = logging.getLogger(__name__)
_running: dict[str, threading.Thread] = {}


def checklist(experiment: Experiment) -> tuple[list[Item], Preflight | None]:
    """The items of the next round, and the report that some of them come from.

    The report is None until somebody looked at the inputs as they are now.
    """
    number = next_round(experiment)
    report = known(experiment, number)
    found = [item_of(check) for check in report.checks] if report else []
    return [*machine_items(settings_of(experiment, number), experiment, number), *found], report


def require_ready(
    experiment: Experiment,
    *,
    planned: int | None = None,
    config: dict[str, Any] | None = None,
    trust_s: float = TRUST_S,
) -> None:
    """Look at what the next round will read. Raises InputError with the first red item.

    ``planned`` is the number of rounds and ``config`` the round's settings where they are about to
    change. What was red longer than ``trust_s`` ago is looked at again, because its cause may be
    gone without any input having changed.
    """
    if not settings.INTRASKILL_PREFLIGHT:
        return
    number = next_round(experiment)
    report = report_of(experiment, number, config, trust_s=trust_s)
    own = config or settings_of(experiment, number)
    items = [*machine_items(own, experiment, number, planned), *map(item_of, report.checks)]
    red = [item for item in items if item.red]
    if red:
        raise refusal(red, number)


def report_of(
    experiment: Experiment,
    number: int,
    config: dict[str, Any] | None = None,
    *,
    trust_s: float = TRUST_S,
) -> Preflight:
    """What is known of the round's inputs, or else a look at them (seconds).

    Of several that ask at once one looks, and the others wait for its report.
    """
    report = known(experiment, number, config)
    if report is None or is_doubtful(report, trust_s):
        with alone(key_of(experiment, number, config)):  # then somebody may have looked
            report = known(experiment, number, config)
            if report is None or is_doubtful(report, trust_s):
                report = look(experiment, number, config)
    return report


def look_ahead(experiment: Experiment, number: int) -> None:
    """Look beside the page at what the round will read, unless that is known.

    Who then starts it need not wait: the report counts as long as its inputs are the same.
    """
    if settings.INTRASKILL_PREFLIGHT:
        target = target_of(experiment, number)
        kick(target, lambda: report_of(experiment, number, trust_s=AHEAD_S))


def known(
    experiment: Experiment, number: int, config: dict[str, Any] | None = None
) -> Preflight | None:
    """The report of the round's inputs as they are now: its own, or a fresh one of an experiment
    that begins with equal ones, such as another seed of a sweep's arm."""
    reports = Preflight.objects.filter(key=key_of(experiment, number, config))
    fresh = timezone.now() - timedelta(seconds=SHARED_S)
    mine = Q(target=target_of(experiment, number))
    return reports.filter(mine | Q(checked_at__gte=fresh)).order_by("-checked_at").first()


def forget(experiment: Experiment, number: int) -> None:
    """Let the next look be a new one."""
    mine = Q(target=target_of(experiment, number)) | Q(key=key_of(experiment, number))
    Preflight.objects.filter(mine).delete()


def is_doubtful(report: Preflight, trust_s: float) -> bool:
    """Whether it is red and so old that its cause may be gone."""
    young = abs(timezone.now() - report.checked_at) < timedelta(seconds=trust_s)
    return not young and any(item_of(check).red for check in report.checks)


def look(experiment: Experiment, number: int, config: dict[str, Any] | None = None) -> Preflight:
    """Run the trainer's checks on the inputs of this round, with its settings (seconds).

    Raises InputError where the run folder cannot be written.
    """
    key = key_of(experiment, number, config)
    bank, checkpoint = inputs_of(experiment, number)
    file = experiment.folder / "preflight" / f"round-{number:03d}.yaml"
    try:
        read = config or own_settings(experiment, number) or read_json(experiment.folder / FROZEN)
    except InputError as error:
        return _keep(target_of(experiment, number), key, [_unreadable(str(error))], 0.0)
    read = dict(read)
    read["start"] = {"skillbank": str(bank), "checkpoint": str(checkpoint)}
    try:
        if read.get("slime"):
            read["slime"] = {**read["slime"], "launch": str(launch_of(experiment, number, read))}
        write_text(file, yaml.safe_dump(read, sort_keys=False, allow_unicode=True))
    except InputError as error:  # of the launch file
        return _keep(target_of(experiment, number), key, [_unreadable(str(error))], 0.0)
    except OSError as error:  # of this run alone, so no report that others with equal inputs read
        raise InputError(
            f"cannot be written: {error.strerror}", file=file, remedy="Make its folder writable"
        ) from error
    items, seconds = _findings(file)
    own = [_relative(item, experiment.folder) for item in items]
    return _keep(target_of(experiment, number), key, own, seconds)


def look_at_launch(file: Path) -> Preflight:
    """Run the slime engine's checks on a launch file (seconds)."""
    key = digest(file)
    items, seconds = _findings(file)
    return _keep(f"{SLIME}/{file.name}", key, items, seconds)


def kick(name: str, action: Any) -> None:
    """Run ``action`` beside the page unless one of that name is under way."""
    if under_way(name):
        return

    def work() -> None:
        try:
            action()
        except Exception:
            logger.exception("preflight of %s", name)
        finally:
            connection.close()

    _running[name] = threading.Thread(target=work, name=f"preflight {name}", daemon=True)
    _running[name].start()


def under_way(name: str) -> bool:
    """Whether a look of that name is under way in this process."""
    thread = _running.get(name)
    return thread is not None and thread.is_alive()


def _findings(file: Path) -> tuple[list[Item], float]:
    """What the trainer's checks find, and the seconds they took, once few others look."""
    with one_of_few():
        begun = time.monotonic()
        return _trainer(file), time.monotonic() - begun


def _trainer(file: Path) -> list[Item]:
    """The findings of ``python -m trainer check``; a fault of the command itself is one too."""
    command = [sys.executable, "-m", "trainer", "check", str(file), "--json"]
    try:
        done = subprocess.run(
            command, cwd=settings.BASE_DIR, capture_output=True, text=True,
            timeout=TIMEOUT_S, check=False, env={**os.environ, "PYTHONHASHSEED": "0"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return [_unreadable(f"no answer within {TIMEOUT_S} s")]
    try:
        return [item_of(check) for check in json.loads(done.stdout)["checks"]]
    except (json.JSONDecodeError, KeyError, TypeError):
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return [_unreadable(lines[-1])]


def _relative(item: Item, folder: Path) -> Item:
    """With paths within the run folder: others with equal inputs read the same report."""
    own = {f"{folder}/", f"{folder.resolve()}/"}
    detail, remedy = item.detail, item.remedy
    for prefix in own:
        detail, remedy = detail.replace(prefix, ""), remedy.replace(prefix, "")
    return replace(item, detail=detail, remedy=remedy)


def _unreadable(detail: str) -> Item:
    return Item("configuration", "failed", detail, "Correct the file, then check again")


def _keep(target: str, key: str, items: Sequence[Item], seconds: float) -> Preflight:
    report, _made = Preflight.objects.update_or_create(
        target=target,
        defaults={
            "key": key,
            "ready": all(item.state in ("passed", "warning") for item in items),
            "checks": [item.data() for item in items],
            "seconds": seconds,
        },
    )
    return report
