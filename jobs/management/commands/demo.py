"""``manage.py demo``: run the demonstration through the queue; with ``--wait`` until it is over.

Where an ``up`` runs this home its services do the work; else the services run for as long as this
command waits. Prints a line a stage, then the summary; both as JSON with ``--json``.
"""

from __future__ import annotations

import signal
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from django.conf import settings

from intraskill_web.core.commands import JsonCommand
from intraskill_web.experiments.models import Experiment, Stage
from jobs import demo
from jobs.reconcile import may_resume
from jobs.services import instance
from jobs.services.stack import running_stack
from jobs.services.supervisor import Supervisor
from jobs.summary import summary_of, told
from jobs.transitions import TERMINAL, RoundState, State
from trainer.errors import InputError

POLL_S = 0.3
LOOKS_THAT_AGREE = 2


class Command(JsonCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--rounds", type=int, help="default: what the configuration says")
        parser.add_argument("--seed", type=int)
        parser.add_argument("--quick", action="store_true", help="a tiny round, for tests")
        parser.add_argument("--config", type=Path, help="other settings, e.g. with an analyst")
        parser.add_argument(
            "--profile", choices=("published", "standard"), help="of the gate (default: as above)"
        )
        parser.add_argument("--wait", action="store_true", help="until it is over")
        parser.add_argument("--threads", type=int, help="of the engine (default: at most 2)")

    def run(self, **options: Any) -> bool:
        """Begin, and with ``--wait`` report until the end; False unless every round succeeded."""
        config = demo.configuration(
            quick=options["quick"],
            seed=options["seed"],
            rounds=options["rounds"],
            threads=options["threads"],
            profile=options["profile"],
            path=options["config"],
        )
        if not options["wait"]:
            if instance.running(Path(settings.INTRASKILL_HOME)) is None:
                raise InputError(
                    "nothing runs this home",
                    file=settings.INTRASKILL_HOME,
                    remedy="Add --wait, or run `manage.py up` beside it",
                )
            experiment = demo.run_once(config)
            experiment.refresh_from_db()
            answer = {"experiment": experiment.name, "state": experiment.state}
            self.emit(answer, f"{experiment.name}: {experiment.state}")
            return True
        with self._services() as supervisor:
            experiment = demo.run_once(config)
            self._report(experiment, supervisor)
        experiment.refresh_from_db()
        summary = summary_of(experiment)
        self.emit(summary, told(summary))
        return experiment.state == RoundState.SUCCEEDED

    @contextmanager
    def _services(self) -> Iterator[Supervisor | None]:
        home = Path(settings.INTRASKILL_HOME)
        if instance.running(home) is not None:
            yield None
            return
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _leave)
        with running_stack(home, self.note, port=None) as supervisor:
            yield supervisor

    def _report(self, experiment: Experiment, supervisor: Supervisor | None) -> None:
        """Print each stage once it is over for good, until nothing is left to happen.

        Rows are read one after the other while others change them, so the end is believed only
        when two looks in a row agree.
        """
        told: set[int] = set()
        agreeing = 0
        while agreeing < LOOKS_THAT_AGREE:
            agreeing = agreeing + 1 if self._look(experiment, told) else 0
            if supervisor is not None:
                supervisor.watch()
            time.sleep(POLL_S)

    def _look(self, experiment: Experiment, told: set[int]) -> bool:
        """Tell what ended since the last look; whether the experiment seems to be over."""
        stages = Stage.objects.filter(round__experiment=experiment, state__in=TERMINAL)
        goes_on = False
        for stage in stages.select_related("round__experiment").order_by("id"):
            if _goes_on(stage):
                goes_on = True
            elif stage.pk not in told:
                told.add(stage.pk)
                self._tell(stage)
        experiment.refresh_from_db()
        return not goes_on and experiment.state not in (RoundState.RUNNING, RoundState.STOPPING)

    def _tell(self, stage: Stage) -> None:
        line = {
            "stage": stage.kind,
            "round": stage.round.number,
            "seconds": round(stage.seconds or 0.0, 3),
            "status": stage.state,
        }
        if stage.state != State.SUCCEEDED:
            line["message"] = stage.message
        self.emit(line, f"round {line['round']} {stage.kind}: {stage.state}, {line['seconds']} s")
        sys.stdout.flush()


def _leave(number: int, _frame: FrameType | None) -> None:
    """Leave through every ``finally``, so that nothing that was started is left behind."""
    sys.exit(128 + number)


def _goes_on(stage: Stage) -> bool:
    """Whether the reconciler is about to continue the stage."""
    return may_resume(stage, list(stage.attempts.order_by("-number")[:10]))
