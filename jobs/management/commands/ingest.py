"""``manage.py ingest PATH``: make episode rows of trace files.

Files in a run folder belong to its experiment; for others ``--experiment`` names one, which is
made if it does not exist. Repeating adds nothing; ``--rebuild`` makes the rows anew.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.conf import settings

from intraskill_web.core.commands import JsonCommand
from intraskill_web.core.formats import duration
from intraskill_web.experiments.models import Experiment
from jobs.episodes.ingest import Tick, ingest
from trainer.canonical import safe_name
from trainer.errors import InputError

SAY_EVERY_S = 2.0


class Command(JsonCommand):
    help = __doc__ or ""
    said = 0.0

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("path", type=Path)
        parser.add_argument("--experiment")
        parser.add_argument("--rebuild", action="store_true", help="make the rows anew")

    def run(self, **options: Any) -> bool:
        """Ingest; False when lines or files could not be read."""
        path: Path = options["path"]
        if not path.exists():
            raise InputError(
                "no such file or folder", file=path,
                remedy="Name a trace file, or a folder with some below it",
            )  # fmt: skip
        experiment = self._experiment(path.resolve(), options["experiment"])
        self.said = time.monotonic()
        report = ingest(path, experiment, rebuild=options["rebuild"], tell=self._tell)
        for problem in report.problems:
            self.note(f"not read to its end: {problem}")
        self.emit(asdict(report))
        return report.bad_lines == 0 and not report.problems

    def _tell(self, tick: Tick) -> None:
        """Every few seconds how far it is, how fast and how long it will take."""
        if time.monotonic() - self.said < SAY_EVERY_S or tick.eta is None:
            return
        self.said = time.monotonic()
        pace = tick.report.turns / tick.seconds
        self.note(
            f"{tick.done / tick.total:.0%}, {tick.report.episodes:,} episodes, {pace:,.0f} turns/s,"
            f" {duration(tick.eta)} left"
        )

    def _experiment(self, path: Path, name: str | None) -> Experiment:
        runs = (Path(settings.INTRASKILL_HOME) / "runs").resolve()
        if name is None:
            if not path.is_relative_to(runs) or path == runs:
                raise InputError(
                    "is in no run folder", file=path, remedy="Name one with --experiment"
                )
            name = path.relative_to(runs).parts[0]
        found, _made = Experiment.objects.get_or_create(name=safe_name(name))
        return found
