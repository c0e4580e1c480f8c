"""``manage.py check_report DIR``: open an export again and compute its numbers again."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from intraskill_web.core.commands import JsonCommand
from jobs.reports.check import check_report


class Command(JsonCommand):
    help = __doc__ or ""
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("folder", type=Path, help="an export, or its .zip")

    def run(self, **options: Any) -> bool:
        """Check; False when anything is wrong."""
        result = check_report(options["folder"].absolute())
        lines = [f"{p['file']}: {p['problem']}" for p in result["problems"]]
        self.emit(result, "\n".join(lines) or f"{result['files']} files are as they should be")
        return bool(result["ok"])
