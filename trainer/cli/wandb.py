"""``python -m trainer wandb FOLDER…``: report finished stages to W&B, from their files.

A folder may hold a gate, an analysis, or the training of a round. Reporting later gives the same
runs as reporting at once; a tracker that fails is said in the result and leaves the exit code
alone.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from trainer.cli.main import add_json_flag, print_json
from trainer.files import read_jsonl
from trainer.sinks.base import MetricPoint
from trainer.sinks.stage_reports import report_of
from trainer.sinks.wandb import WandbSettings, WandbSink, add_flags, report_stage, settings_from


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``wandb``."""
    parser = subparsers.add_parser("wandb", help="report finished stages to W&B")
    parser.add_argument("folder", type=Path, nargs="+")
    parser.add_argument("--name", help="run name (default: experiment and round of the path)")
    add_flags(parser)
    parser.set_defaults(func=run)
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Report each folder and print one result for all."""
    settings = settings_from(os.environ, args)
    print_json({"reported": [_report(path, settings, args.name) for path in args.folder]})
    return 0


def _report(folder: Path, settings: WandbSettings, name: str | None) -> dict[str, Any]:
    folder = folder.resolve()
    round_id = folder.parent.name
    name = name or f"{folder.parent.parent.name}-{round_id}"
    metrics = folder / "metrics.jsonl"
    if metrics.is_file():
        return {"folder": str(folder), "stage": "train"} | _training(
            folder, settings, name, round_id
        )
    report = report_of(folder, privileged=settings.privileged)
    problem = report_stage(report, settings, name=name, round_id=round_id, folder=folder)
    return {"folder": str(folder), "stage": report.stage, "metrics": len(report.metrics), **problem}


def _training(folder: Path, settings: WandbSettings, name: str, round_id: str) -> dict[str, Any]:
    points = [
        MetricPoint(line["step"], line["metrics"], line["seconds"])
        for line in read_jsonl(folder / "metrics.jsonl")
    ]
    try:
        sink = WandbSink(settings, name=name, round_id=round_id, folder=folder)
        for point in points:
            sink.log(point)
        sink.close()
    except Exception as error:  # whatever a tracker may raise is only a message
        return {"steps": len(points), "wandb_error": f"{type(error).__name__}: {error}"}
    return {"steps": len(points)}
