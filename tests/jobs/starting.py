"""``python -m tests.jobs.starting make`` makes an experiment, ``start N`` starts it with others.

``start`` leaves a file ``ready-N`` in the home, waits for the file ``go``, and prints ``started``
or the reason why it was refused. Works on the home and the database of the environment.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

NAME = "contested"


def main(argv: list[str]) -> int:
    """Make, or start when all are ready."""
    os.environ.setdefault("LOG_LEVEL", "ERROR")
    import django

    django.setup()
    from django.conf import settings

    from intraskill_web.experiments.making import create_experiment
    from intraskill_web.experiments.models import Experiment
    from intraskill_web.experiments.services import start_round
    from jobs import demo
    from trainer.errors import InputError

    if argv[0] == "make":
        config = demo.configuration(quick=True, seed=7, rounds=1)
        create_experiment(config.model_copy(update={"name": NAME}))
        return 0
    experiment = Experiment.objects.get(name=NAME)
    home = Path(settings.INTRASKILL_HOME)
    (home / f"ready-{argv[1]}").touch()
    while not (home / "go").exists():
        time.sleep(0.001)
    try:
        start_round(experiment, is_ready=True)
    except InputError as refusal:
        sys.stdout.write(f"{refusal.reason}\n")
    else:
        sys.stdout.write("started\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
