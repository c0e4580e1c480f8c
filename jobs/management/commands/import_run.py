"""``manage.py import_run DIR --name NAME``: a published run or a run folder into rows."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from intraskill_web.core.commands import JsonCommand
from jobs.imports.run import import_run


class Command(JsonCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("folder", type=Path, help="holds artifacts/ or experiment.json")
        parser.add_argument("--name", required=True, help="the experiment's name")

    def run(self, **options: Any) -> bool:
        """Import; False when a file is not what its hash says."""
        result = import_run(options["folder"].resolve(), options["name"])
        self.emit(result)
        return not result["mismatched"]
