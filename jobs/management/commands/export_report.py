"""``manage.py export_report NAME --out DIR``: an experiment as a static site that proves itself.

Several names give the comparison of these experiments.
"""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from intraskill_web.core import audit
from intraskill_web.core.commands import JsonCommand, experiment_named
from jobs.reports.build import export_report
from jobs.reports.compare import export_comparison


class Command(JsonCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("name", nargs="+", help="the experiment, or several to compare")
        parser.add_argument("--out", type=Path, required=True, help="the folder to make")
        parser.add_argument("--lang", default="en,zh", help="languages, the first at the root")
        parser.add_argument("--zip", action="store_true", help="also write OUT.zip")
        parser.add_argument("--force", action="store_true", help="replace an export that is there")

    def run(self, **options: Any) -> bool:
        """Export and print what was written."""
        names = options["name"]
        experiments = [experiment_named(name) for name in names]
        settings = {
            "languages": [key.strip() for key in options["lang"].split(",")],
            "archive": options["zip"],
            "force": options["force"],
        }
        out = options["out"].absolute()
        if len(experiments) == 1:
            made = export_report(experiments[0], out, **settings)
        else:
            made = export_comparison(experiments, out, **settings)
        audit.record(
            "report.export",
            experiment=names[0] if len(names) == 1 else "",
            subject=" ".join(names)[:200],
            manifest=made.manifest_sha256,
        )
        self.emit(made.to_record())
        return True
