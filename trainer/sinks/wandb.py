"""Copies of a run's metrics on W&B: training steps as they come, analyses and gates once they end.

The files stay the truth: a tracker that fails is noted and changes neither result nor exit code.
Traces are never uploaded, and gold-aware cards only when that is asked for. The key comes from the
login or WANDB_API_KEY; nothing here takes one. Organisation of runs: training.md §5.5, §9.31.
"""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from trainer.canonical import safe_name
from trainer.errors import InputError
from trainer.sinks.base import MetricPoint, Sinks
from trainer.sinks.stage_reports import TABLE, TABLE_COLUMNS, StageReport

logger = logging.getLogger(__name__)
Mode = Literal["online", "offline", "disabled"]
MODES: tuple[Mode, ...] = ("online", "offline", "disabled")
ROLLOUT_AXIS = "rollout/step"
TRAIN_AXIS = "train/step"
#: metric families and the axis they are drawn over
AXES: Mapping[str, str] = {
    "rollout/*": ROLLOUT_AXIS,
    "perf/*": ROLLOUT_AXIS,
    "train/*": TRAIN_AXIS,
}


@dataclass(frozen=True, slots=True)
class WandbSettings:
    """Where runs go. ``folder`` keeps the files of offline runs for a later ``wandb sync``."""

    project: str = "shopsimrl"
    entity: str | None = None
    group: str | None = None
    mode: Mode = "online"
    folder: Path | None = None
    privileged: bool = False


def settings_from(environ: Mapping[str, str], args: argparse.Namespace) -> WandbSettings:
    """Flags over environment over defaults. Raises InputError for an unknown mode."""
    mode = args.wandb_mode or environ.get("WANDB_MODE") or "online"
    if mode not in MODES:
        raise InputError(
            "unknown mode", field="WANDB_MODE", value=mode, remedy=f"choose of {', '.join(MODES)}"
        )
    folder = args.wandb_dir or environ.get("WANDB_DIR") or None
    return WandbSettings(
        project=args.wandb_project or environ.get("WANDB_PROJECT") or "shopsimrl",
        entity=args.wandb_entity or environ.get("WANDB_ENTITY") or None,
        group=args.wandb_group or environ.get("WANDB_GROUP") or None,
        mode=mode,
        folder=None if folder is None else Path(folder),
        privileged=bool(args.wandb_upload_cards),
    )


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The W&B flags of a command."""
    parser.add_argument("--wandb-project")
    parser.add_argument("--wandb-entity")
    parser.add_argument("--wandb-group")
    parser.add_argument("--wandb-mode", choices=MODES)
    parser.add_argument("--wandb-dir")
    parser.add_argument(
        "--wandb-upload-cards",
        action="store_true",
        help="also upload the gold-aware failure cards: whoever sees the project sees the answers",
    )


class WandbSink:
    """A training run's metrics, one log a step. Create it only where W&B is wanted."""

    def __init__(
        self,
        settings: WandbSettings,
        *,
        name: str,
        round_id: str,
        folder: Path,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin the run ``name``. Raises InputError without the package."""
        self._run = _begin(
            settings,
            name=f"{name}-{round_id}",
            group=settings.group or name,
            job_type="train",
            folder=folder,
            config={"shopsimrl_round": round_id, **(config or {})},
        )
        for axis in (ROLLOUT_AXIS, TRAIN_AXIS):
            self._run.define_metric(axis)
        for family, axis in AXES.items():
            self._run.define_metric(family, step_metric=axis)

    def log(self, point: MetricPoint) -> None:
        """Pass on one step; seconds go under ``perf/``."""
        seconds = {f"perf/{name}_time": value for name, value in point.seconds.items()}
        self._run.log({**point.metrics, **seconds, ROLLOUT_AXIS: point.step})

    def close(self) -> None:
        """End the run."""
        self._run.finish()


def report_stage(
    report: StageReport,
    settings: WandbSettings,
    *,
    name: str,
    round_id: str,
    folder: Path,
) -> dict[str, str]:
    """Report a finished stage. Returns ``{}``, or ``{"wandb_error": …}`` when that failed.

    The error is for the command's printed result; the stage itself is not affected.
    """
    try:
        _report(report, settings, name=name, round_id=round_id, folder=folder)
    except Exception as error:  # whatever a tracker may raise must not lose the stage
        logger.exception("reporting the %s to W&B failed", report.stage)
        return {"wandb_error": f"{type(error).__name__}: {error}"}
    return {}


def _report(
    report: StageReport, settings: WandbSettings, *, name: str, round_id: str, folder: Path
) -> None:
    wandb = _package()
    run = _begin(
        settings,
        name=f"{name}-{report.stage}",
        group=settings.group or name,
        job_type=report.stage,
        folder=folder,
        config={
            "shopsimrl_stage": report.stage,
            "shopsimrl_round": round_id,
            "output_dir": str(folder),
        },
    )
    try:
        values: dict[str, Any] = dict(report.metrics)
        if report.table:
            rows = [list(row) for row in report.table]
            values[TABLE] = wandb.Table(columns=list(TABLE_COLUMNS), data=rows)
        run.log(values)
        if report.files:
            artifact = wandb.Artifact(
                safe_name(f"shopsimrl-{name}-{report.stage}"), type=f"shopsimrl-{report.stage}"
            )
            for path in report.files:
                artifact.add_file(str(path), name=path.name)
            run.log_artifact(artifact)
    finally:
        run.finish()


def _begin(
    settings: WandbSettings,
    *,
    name: str,
    group: str,
    job_type: str,
    folder: Path,
    config: Mapping[str, Any],
) -> Any:
    wandb = _package()
    place = settings.folder or folder / "wandb"
    place.mkdir(parents=True, exist_ok=True)
    # Artefacts wait here for a later sync; by default they would lie in the home folder.
    os.environ["WANDB_DATA_DIR"] = str(place / "data")
    os.environ["WANDB_CACHE_DIR"] = str(place / "cache")
    return wandb.init(
        project=settings.project,
        entity=settings.entity,
        group=group,
        name=name,
        job_type=job_type,
        mode=settings.mode,
        dir=str(place),
        config=dict(config),
        settings=cast(Any, wandb).Settings(
            # The host, its programs and its code are nobody's business.
            save_code=False,
            disable_git=True,
            disable_code=True,
            x_disable_meta=True,
            x_disable_stats=True,
            console="off",
            silent=True,
        ),
        reinit="create_new",
    )


def _package() -> Any:
    try:
        import wandb
    except ImportError as error:
        raise InputError(
            "W&B is not installed", field="wandb", remedy="pip install wandb"
        ) from error
    return wandb


def training_sinks(environ: Mapping[str, str], *, name: str, round_id: str, folder: Path) -> Sinks:
    """The copies that the environment asks for: W&B with ``USE_WANDB=1``, else none.

    A tracker that cannot be reached is said once, and the run goes on without it.
    """
    if not wanted(environ):
        return Sinks()
    nothing = argparse.Namespace(
        wandb_mode=None,
        wandb_dir=None,
        wandb_project=None,
        wandb_entity=None,
        wandb_group=None,
        wandb_upload_cards=False,
    )
    settings = settings_from(environ, nothing)
    try:
        return Sinks([WandbSink(settings, name=name, round_id=round_id, folder=folder)])
    except Exception:  # whatever a tracker may raise must not keep a run from starting
        logger.exception("training goes on without W&B")
        return Sinks()


def wanted(environ: Mapping[str, str]) -> bool:
    """Whether ``USE_WANDB`` asks for W&B. Raises InputError when it is neither 0 nor 1."""
    value = environ.get("USE_WANDB", "0")
    if value not in ("0", "1"):
        raise InputError("must be 0 or 1", field="USE_WANDB", value=value)
    return value == "1"
