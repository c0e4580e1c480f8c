"""``manage.py translations``: compile the catalogues; needs no gettext."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from intraskill_web.core.po import compile_stale


class Command(BaseCommand):
    help = __doc__ or ""

    def handle(self, *args: Any, **options: Any) -> None:
        """Compile every ``django.po`` that is newer than its ``django.mo``."""
        for language, count in compile_stale(map(Path, settings.LOCALE_PATHS)).items():
            if options["verbosity"]:
                self.stdout.write(f"{language}: {count} messages")
