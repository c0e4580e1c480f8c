"""Runs the trainer's checks for an experiment's next round or a launch file, and keeps the report.

A report counts for the inputs it looked at: their hashes name it. Looking again at the same inputs
is free, so the checklist that a person read is the one that lets the round start.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings
from django.db import connection

from intraskill_web.experiments.models import Experiment
from intraskill_web.monitoring.models import Preflight
from intraskill_web.monitoring.preflight.items import Item, item_of
from intraskill_web.monitoring.preflight.machine import machine_items
from trainer.canonical import fingerprint
from trainer.errors import InputError
from trainer.files import read_json, write_text

TIMEOUT_S = 300
SLIME = "slime"

logger = logging.getLogger(__name__)
_running: dict[str, threading.Thread] = {}


def next_round(experiment: Experiment) -> int:
    """The number that the next round will have."""
    last = experiment.rounds.order_by("-number").first()
    return 0 if last is None else last.number + 1


def checklist(experiment: Experiment) -> tuple[list[Item], Preflight | None]:
    """The items of the next round, and the report that some of them come from.

    The report is None until somebody looked at the inputs as they are now.
    """
    number = next_round(experiment)
    report = known(experiment, number)
    found = [item_of(check) for check in report.checks] if report else []
    return [*machine_items(experiment, number), *found], report


def require_ready(experiment: Experiment, *, planned: int | None = None) -> None:
    """Look at what the next round will read. Raises InputError with the first red item.

    ``planned`` is the number of rounds where it is about to change.
    """
    if not settings.INTRASKILL_PREFLIGHT:
        return
    number = next_round(experiment)
    report = known(experiment, number) or look(experiment, number)
    items = [*machine_items(experiment, number, planned), *map(item_of, report.checks)]
    red = [item for item in items if item.red]
    if red:
        more = f" (and {len(red) - 1} more)" if len(red) > 1 else ""
        raise InputError(
            f"the preflight is red: {red[0].name}: {red[0].detail}{more}",
            field="round",
            value=number,
            remedy=red[0].remedy or "See the checklist of the experiment",
        )


def known(experiment: Experiment, number: int) -> Preflight | None:
    """The report of the round's inputs as they are now."""
    return Preflight.objects.filter(
        target=target_of(experiment, number), key=key_of(experiment, number)
    ).first()


def target_of(experiment: Experiment, number: int) -> str:
    """What a report of this round is filed under."""
    return f"{experiment.name}/round-{number:03d}"


def inputs_of(experiment: Experiment, number: int) -> tuple[Path, Path]:
    """The bank and the checkpoint that round ``number`` will start from (jobs.layout)."""
    if number == 0:
        start = experiment.folder / "start"
        return start / "skillbank.json", start / "checkpoint"
    before = experiment.folder / f"round-{number - 1:03d}"
    return before / "gate" / "selected_skillbank.json", before / "train" / "checkpoint"


def key_of(experiment: Experiment, number: int) -> str:
    """The hash of the settings, the bank and the checkpoint's record."""
    bank, checkpoint = inputs_of(experiment, number)
    own = own_settings(experiment, number)
    settings_sha256 = fingerprint(own) if own else experiment.config_sha256
    parts = [settings_sha256, *map(_digest, (bank, checkpoint / "checkpoint.json"))]
    return fingerprint(parts)


def own_settings(experiment: Experiment, number: int) -> dict[str, Any]:
    """The changed settings that round ``number`` inherits from the one before it; mostly none."""
    before = experiment.rounds.filter(number=number - 1).first()
    return dict(before.config) if before else {}


def look(experiment: Experiment, number: int) -> Preflight:
    """Run the trainer's checks of an experiment on the inputs of this round (seconds)."""
    key = key_of(experiment, number)
    bank, checkpoint = inputs_of(experiment, number)
    file = experiment.folder / "preflight" / f"round-{number:03d}.yaml"
    try:
        config = own_settings(experiment, number) or read_json(
            experiment.folder / "experiment.json"
        )
    except InputError as error:
        return _keep(target_of(experiment, number), key, [_unreadable(str(error))], 0.0)
    config["start"] = {"skillbank": str(bank), "checkpoint": str(checkpoint)}
    write_text(file, yaml.safe_dump(config, sort_keys=False, allow_unicode=True))
    begun = time.monotonic()
    return _keep(target_of(experiment, number), key, _trainer(file), time.monotonic() - begun)


def launch_files() -> list[Path]:
    """Launch files of the slime engine that this installation knows."""
    folder = Path(settings.INTRASKILL_LAUNCH_FOLDER)
    return [file for file in sorted(folder.glob("*.yaml")) if _engine(file) == SLIME]


def look_at_launch(file: Path) -> Preflight:
    """Run the slime engine's checks on a launch file (seconds)."""
    begun = time.monotonic()
    key = _digest(file)
    return _keep(f"{SLIME}/{file.name}", key, _trainer(file), time.monotonic() - begun)


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


def _engine(file: Path) -> str:
    try:
        value = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return ""
    return str(value.get("engine", "")) if isinstance(value, dict) else ""


def _digest(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return "absent"
