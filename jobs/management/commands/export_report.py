"""``manage.py export_report NAME --out DIR``: an experiment as a static site that proves itself."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from intraskill_web.core import audit
from intraskill_web.core.commands import JsonCommand, experiment_named
from jobs.reports.build import export_report


class Command(JsonCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("name", help="the experiment")
        parser.add_argument("--out", type=Path, required=True, help="the folder to make")
        parser.add_argument("--lang", default="en,zh", help="languages, the first at the root")
        parser.add_argument("--zip", action="store_true", help="also write OUT.zip")
        parser.add_argument("--force", action="store_true", help="replace an export that is there")

    def run(self, **options: Any) -> bool:
        """Export and print what was written."""
        made = export_report(
            experiment_named(options["name"]),
            options["out"].absolute(),
            languages=[key.strip() for key in options["lang"].split(",")],
            archive=options["zip"],
            force=options["force"],
        )
        audit.record("report.export", experiment=options["name"], manifest=made.manifest_sha256)
        self.emit(made.to_record())
        return True
