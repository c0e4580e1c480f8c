"""An evaluation order as a job: frozen configurations, one ``evaluate run``, progress in its row.

The command goes on where its files end, so a job that died or was stopped is simply run again. The
trainer ends with its job.
"""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from intraskill_web.core import audit
from intraskill_web.reports.models import EvaluationOrder
from jobs.child import belonging
from jobs.layout import read_experiment, write_config
from trainer.config import EvaluateConfig, PolicyConfig, SkillsConfig, TaskConfig
from trainer.errors import InputError
from trainer.files import read_json, write_json
from trainer.lock import Held, exclusive

POLL_S = 0.5
GRACE_S = 30.0
ENDS = {0: "succeeded", 143: "stopped"}


def run_order(pk: int) -> None:
    """Play an order; a row that another job took is left alone."""
    order = EvaluationOrder.objects.select_related("experiment", "owner").get(pk=pk)
    with suppress(Held), exclusive(order.workplace) as lock:
        _carry_out(order, lock)


def _carry_out(order: EvaluationOrder, lock: int) -> None:
    now = timezone.now()
    if not order.own.filter(state="requested").update(
        state="running", heartbeat_at=now, updated_at=now
    ):
        return
    try:
        configs = write_order(order)
        code, message = _play(order, configs, lock)
    except InputError as error:
        code, message = 2, str(error)
    state = ENDS.get(code, "failed")
    told = "" if code in ENDS else message[:2000]
    if not _note(order, state=state, ended_at=timezone.now(), error=told):
        return
    audit.record(
        "order.end", actor=order.owner, experiment=order.experiment.name, subject=order.name,
        state=state, split=order.split,
    )  # fmt: skip


def write_order(order: EvaluationOrder) -> list[Path]:
    """Freeze the order's configurations; an order that lies there already stays as it is.

    Raises InputError when it was changed, because half of it may have been played.
    """
    experiment = order.experiment
    config = read_experiment(experiment.folder)
    record = {
        "split": order.split,
        "limit": order.limit,
        "repeats": order.repeats,
        "arms": [{**arm, "split": order.split} for arm in order.arms],
    }
    path = order.folder / "order.json"
    if path.is_file() and read_json(path) != record:
        raise InputError("holds another order", file=path, remedy="Plan a new one")
    write_json(path, record)
    configs = []
    for arm in order.arms:
        file = order.folder / "config" / f"{arm['name']}.yaml"
        if not file.is_file():
            write_config(file, _config(order, arm, config))
        configs.append(file)
    return configs


def _config(order: EvaluationOrder, arm: dict[str, Any], config: Any) -> EvaluateConfig:
    """One arm; the seed is the experiment's, so that arms are paired task by task."""
    up = Path("../../..")  # from orders/<name>/config to the run's folder
    bank = arm["skillbank"]
    return EvaluateConfig(
        stage="evaluate",
        name=f"{order.name}-{arm['name']}",
        output_dir=Path("..") / arm["name"],
        seed=config.seed,
        world=config.world,
        policy=PolicyConfig(
            checkpoint=up / arm["checkpoint"],
            temperature=config.temperature,
            max_new_tokens=config.max_new_tokens,
            threads=config.threads,
        ),
        tasks=TaskConfig(split=order.split, limit=order.limit, repeats=order.repeats),
        skills=SkillsConfig(provider="bank", bank=up / bank) if bank else SkillsConfig(),
        batch_size=config.evaluation.batch_size,
    )


def _play(order: EvaluationOrder, configs: list[Path], lock: int) -> tuple[int, str]:
    """Run the command to its end; its exit code and the last line of its log."""
    log = Path(settings.INTRASKILL_HOME) / "logs" / f"order-{order.pk}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "trainer", "evaluate", "run", *map(str, configs)]
    with log.open("ab") as out:
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=out, **belonging(lock)
        )
        code = _watch(order, process)
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return code, lines[-1] if lines else ""


def _watch(order: EvaluationOrder, process: subprocess.Popen[bytes]) -> int:
    asked_at: float | None = None
    while process.poll() is None:
        done, total, message = progress(order)
        _note(order, done=done, total=total, message=message, heartbeat_at=timezone.now())
        state = order.own.values_list("state", flat=True).first()
        if state in ("stopping", None) and asked_at is None:  # None: another host has it now
            process.terminate()
            asked_at = time.monotonic()
        if asked_at is not None and time.monotonic() - asked_at > GRACE_S:
            process.kill()
        time.sleep(POLL_S)
    done, total, message = progress(order)
    _note(order, done=done, total=total, message=message)
    return 143 if asked_at is not None and process.returncode else process.returncode


def progress(order: EvaluationOrder) -> tuple[int, int, str]:
    """Episodes played and planned over all arms, and what is being played."""
    done = total = known = 0
    message = ""
    for arm in order.arms:
        path = order.folder / arm["name"] / "progress.json"
        if path.is_file():
            record = read_json(path)
            done += int(record["done"])
            total += int(record["total"])
            known += 1
            message = arm["name"]
    if known:
        total = total * len(order.arms) // known
    return done, total, message


def _note(order: EvaluationOrder, **values: object) -> bool:
    """Write into the row; False where another host has it now."""
    return bool(order.own.update(updated_at=timezone.now(), **values))
