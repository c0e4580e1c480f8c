"""The base of commands that others script against.

JSON goes to stdout, one object a line; messages go to stderr. Exit codes: 0 done, 1 ran but the
result is negative or incomplete, 2 bad input.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from intraskill_web.experiments.models import Experiment
from trainer.errors import IncompleteError, InputError

EXIT_INCOMPLETE = 1
EXIT_BAD_INPUT = 2


class JsonCommand(BaseCommand):
    """Subclasses write ``run`` and print through ``emit``."""

    requires_migrations_checks = False
    requires_system_checks: list[str] = []  # they load every page; `manage.py check` makes them

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON, one object a line")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run, and turn errors into one line and an exit code."""
        self.as_json = bool(options["json"])
        try:
            ok = self.run(**options)
        except InputError as error:
            self.note(f"error: {error}")
            sys.exit(EXIT_BAD_INPUT)
        except IncompleteError as error:
            self.note(f"incomplete: {error}")
            sys.exit(EXIT_INCOMPLETE)
        if not ok:
            sys.exit(EXIT_INCOMPLETE)

    def run(self, **options: Any) -> bool:
        """Do the work; False when the result is negative."""
        raise NotImplementedError

    def emit(self, value: dict[str, Any], text: str = "") -> None:
        """Print a result: as JSON if asked to, else as ``text`` (or as readable JSON)."""
        if self.as_json:
            self.stdout.write(json.dumps(value, ensure_ascii=False, allow_nan=False))
        else:
            self.stdout.write(text or json.dumps(value, ensure_ascii=False, indent=2))
        self.stdout.flush()

    def note(self, message: str) -> None:
        """A message for people."""
        self.stderr.write(message)
        self.stderr.flush()


def experiment_named(name: str) -> Experiment:
    """The experiment, or an InputError that lists those that exist."""
    found = Experiment.objects.filter(name=name).first()
    if found is None:
        names = ", ".join(Experiment.objects.values_list("name", flat=True)[:20]) or "none yet"
        raise InputError(
            "no such experiment", field="name", value=name, remedy=f"known: {names}"
        )  # fmt: skip
    return found
