"""``manage.py worker``: take attempts from the queue, one after the other, until SIGTERM."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from jobs import queue


class Command(BaseCommand):
    help = __doc__ or ""

    def handle(self, *args: Any, **options: Any) -> None:
        """Work. What jobs import is imported here once, so that each work-horse starts at once."""
        import jobs.runner  # noqa: F401

        self.stdout.write("waiting for attempts")
        self.stdout.flush()
        queue.work()
