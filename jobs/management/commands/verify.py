"""``manage.py verify NAME``: hash every document of an experiment again."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from intraskill_web.core.commands import JsonCommand, experiment_named
from jobs.verify import verify


class Command(JsonCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("name", help="the experiment")

    def run(self, **options: Any) -> bool:
        """Verify; False when a document is missing or was changed."""
        result = verify(experiment_named(options["name"]))
        self.emit(result)
        return not result["mismatched"]
