"""``manage.py up``: run this home — queue, worker, reconciler, pages — until Ctrl-C.

The next ``up`` continues where this one ended. With ``--demo`` the demonstration is started too, or
continued.
"""

from __future__ import annotations

import signal
import sys
import time
from argparse import ArgumentParser
from pathlib import Path
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from jobs import demo
from jobs.services.stack import first_admin, printer, running_stack
from trainer.errors import InputError

EXIT_BAD_INPUT = 2
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Command(BaseCommand):
    help = __doc__ or ""
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--demo", action="store_true", help="start or continue the demo")
        parser.add_argument("--port", type=int, default=settings.INTRASKILL_PORT)
        parser.add_argument("--no-web", action="store_true", help="no pages")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until a signal asks to end."""
        home = Path(settings.INTRASKILL_HOME)
        say = printer()
        asked = _listen()
        try:
            port = None if options["no_web"] else options["port"]
            with running_stack(home, say, port=port) as supervisor:
                password = first_admin(home)
                if options["demo"]:
                    say(demo.start_or_continue())
                _greet(say, supervisor.facts.get("address"), home, password)
                while not asked:
                    supervisor.watch()
                    time.sleep(0.3)
                say("ending: stages are stopped where they can be continued")
        except InputError as error:
            say(f"error: {error}")
            sys.exit(EXIT_BAD_INPUT)
        say("ended")


def _listen() -> list[int]:
    """A list that fills when a signal asks to end."""
    asked: list[int] = []

    def ask(number: int, _frame: FrameType | None) -> None:
        asked.append(number)

    for number in ENDING:
        signal.signal(number, ask)
    return asked


def _greet(say: Any, address: object, home: Path, password: str | None) -> None:
    say(f"home: {home}")
    if password is not None:
        say(f"first login: admin / {password}   (also in {home / 'secrets' / 'admin-password'})")
    say(f"ready: {address}" if address else "ready")
