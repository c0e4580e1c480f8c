"""``manage.py reconcile``: keep rows true until SIGTERM; ``--once`` makes a single pass."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from jobs.reconcile import reconcile, run_forever


class Command(BaseCommand):
    help = __doc__ or ""
    requires_system_checks = []  # they load every page; whoever died is to be back at once

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="one pass, then end")

    def handle(self, *args: Any, **options: Any) -> None:
        """Reconcile."""
        if options["once"]:
            reconcile()
        else:
            run_forever()
