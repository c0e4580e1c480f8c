"""``manage.py ingest PATH``: make episode rows of trace files.

Files in a run folder belong to its experiment; for others ``--experiment`` names one, which is
made if it does not exist.
"""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.conf import settings

from intraskill_web.core.commands import JsonCommand
from intraskill_web.experiments.models import Experiment
from jobs.ingest import ingest
from trainer.canonical import safe_name
from trainer.errors import InputError


class Command(JsonCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("path", type=Path)
        parser.add_argument("--experiment")

    def run(self, **options: Any) -> bool:
        """Ingest; False when lines could not be read."""
        path: Path = options["path"]
        if not path.exists():
            raise InputError("no such file or folder", file=path)
        report = ingest(path, self._experiment(path.resolve(), options["experiment"]))
        self.emit(asdict(report))
        return report.bad_lines == 0

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
