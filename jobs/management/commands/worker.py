"""``manage.py worker``: take attempts of this host, one after the other, until SIGTERM.

It registers the host (GPUs, versions, free disk). ``--kinds cpu`` makes a worker that takes only
what needs no GPU, to run beside one that trains; ``stages`` and ``work`` make two of which one
takes the stages and the other replays, exports and orders.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from jobs import placement
from jobs.hosts import Registration
from jobs.worker import work

ALL = "gpu,cpu"
SERVED: dict[str, tuple[str, ...]] = {  # what each takes, first served first
    ALL: (*placement.KINDS, placement.WORK),
    "gpu": ("gpu",),
    "cpu": ("cpu", placement.WORK),
    "stages": placement.KINDS,
    "work": (placement.WORK,),
}


class Command(BaseCommand):
    help = __doc__ or ""
    requires_system_checks = []  # they load every page; whoever died is to be back at once

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--kinds", choices=SERVED, default=ALL, help=f"what it takes (default: {ALL}, all)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Work. What jobs import is imported here once, so that each work-horse starts at once."""
        import jobs.runner  # noqa: F401

        names = placement.queue_names(SERVED[options["kinds"]])
        self.stdout.write(f"waiting for attempts in {', '.join(names)}")
        self.stdout.flush()
        work(names, Registration)
