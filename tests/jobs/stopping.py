"""``python -m tests.jobs.stopping``: begin the quick round, stop each stage once, and resume it.

Works on the home of the environment, which an ``up`` runs. Prints a JSON line a stage: in which
state it ended and how many seconds after the stop was asked for.
"""

from __future__ import annotations

import json
import os
import sys
import time

LIMIT_S = 120.0
BEGIN_S = 6.0


def main() -> int:
    """Stop all six; 1 when the round does not succeed afterwards."""
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    import django

    django.setup()
    from intraskill_web.experiments.services import resume_round, stop_round
    from intraskill_web.experiments.states import STAGE_ORDER
    from jobs import demo
    from jobs.transitions import TERMINAL, State

    experiment = demo.run_once(demo.configuration(quick=True, seed=7, rounds=1))
    stages = {stage.kind: stage for stage in experiment.rounds.get().stages.all()}
    for kind in STAGE_ORDER:
        stage = stages[kind]
        _until(stage, {State.RUNNING, *TERMINAL})
        _until_it_works(stage)
        began = time.monotonic()
        stop_round(experiment)
        _until(stage, set(TERMINAL))
        seconds = time.monotonic() - began
        line = {"stage": kind, "state": stage.state, "seconds": round(seconds, 3)}
        sys.stdout.write(json.dumps(line) + "\n")
        experiment.refresh_from_db()
        if experiment.state == "stopped":
            resume_round(experiment)
    _until(stages["select"], {State.SUCCEEDED})
    return 0


def _until_it_works(stage: object) -> None:
    """Until its command is well on its way: it reported progress, or had a while to begin."""
    deadline = time.monotonic() + BEGIN_S
    while time.monotonic() < deadline:
        stage.refresh_from_db()  # type: ignore[attr-defined]
        if stage.done or stage.state != "running":  # type: ignore[attr-defined]
            return
        time.sleep(0.02)


def _until(stage: object, states: set[object]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while True:
        stage.refresh_from_db()  # type: ignore[attr-defined]
        if stage.state in states:  # type: ignore[attr-defined]
            return
        if time.monotonic() > deadline:
            raise RuntimeError(f"{stage} is {stage.state}, not {sorted(map(str, states))}")  # type: ignore[attr-defined]
        time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main())
