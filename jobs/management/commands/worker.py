"""``manage.py worker``: take attempts of this host, one after the other, until SIGTERM.

It registers the host (GPUs, versions, free disk). ``--kinds cpu`` makes a worker that takes only
what needs no GPU, to run beside one that trains.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from jobs import placement, queue
from jobs.hosts import Registration


class Command(BaseCommand):
    help = __doc__ or ""
    requires_system_checks = []  # they load every page; whoever died is to be back at once

    def add_arguments(self, parser: ArgumentParser) -> None:
        both = ",".join(placement.KINDS)
        parser.add_argument(
            "--kinds", choices=(*placement.KINDS, both), default=both, help="first served first"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Work. What jobs import is imported here once, so that each work-horse starts at once."""
        import jobs.runner  # noqa: F401

        names = placement.queue_names(options["kinds"].split(","))
        self.stdout.write(f"waiting for attempts in {', '.join(names)}")
        self.stdout.flush()
        queue.work(names, Registration)
