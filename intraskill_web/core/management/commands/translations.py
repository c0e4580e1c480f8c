"""``manage.py translations``: compile the catalogues; needs no gettext."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from intraskill_web.core.po import compile_file


class Command(BaseCommand):
    help = __doc__ or ""

    def handle(self, *args: Any, **options: Any) -> None:
        """Compile every ``django.po`` that is newer than its ``django.mo``."""
        for folder in settings.LOCALE_PATHS:
            for source in sorted(Path(folder).glob("*/LC_MESSAGES/*.po")):
                target = source.with_suffix(".mo")
                if target.exists() and target.stat().st_mtime >= source.stat().st_mtime:
                    continue
                count = compile_file(source, target)
                if options["verbosity"]:
                    self.stdout.write(f"{source.parent.parent.name}: {count} messages")
