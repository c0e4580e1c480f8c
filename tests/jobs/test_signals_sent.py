"""While the reconciler is killed each onset of a signal leaves once, signed, to its readers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from intraskill_web.monitoring.notify import signature
from tests.home_databases import NotMadeYet, rows
from tests.jobs.homes import ROOT, Running, end_all, environment, manage
from tests.web.mailbox import mailbox
from tests.web.receiver import receiver

pytestmark = [pytest.mark.slow, pytest.mark.long]
SECRET = signature.new_secret()
BEGIN = """
import django, sys
django.setup()
from pathlib import Path
from django.core.management import call_command
from django.conf import settings
from intraskill_web import home
from intraskill_web.experiments import making, services
from intraskill_web.monitoring.models import Channel
from trainer.experiment_config import ExperimentConfig
from trainer.config_files import load_config
hook, secret = sys.argv[1:]
home.prepare(Path(settings.INTRASKILL_HOME))
call_command("migrate", verbosity=0)
Channel.objects.create(kind="webhook", target=hook, secret=secret)
Channel.objects.create(kind="email", target="olaf@example.org")
config = load_config(settings.BASE_DIR / "configs/mini/quick.yaml", ExperimentConfig)
services.start_round(making.create_experiment(config))
"""


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "homes"
    folder.mkdir()
    yield folder
    end_all(folder)


def attempts(home: Path, state: str) -> int:
    """Attempts in that state now."""
    try:
        query = "SELECT count(*) FROM experiments_attempt WHERE state = ?"
        return int(str(rows(home, query, state)[0][0]))
    except NotMadeYet:
        return 0


def restarted(running: Running, before: int) -> bool:
    return running.pid_of("reconciler") != before


def test_each_onset_leaves_once_although_the_reconciler_is_killed(homes: Path) -> None:
    home = homes / "one"
    home.mkdir()
    with receiver() as hook, mailbox() as post:
        mail = {"EMAIL_HOST": "127.0.0.1", "EMAIL_PORT": str(post.port)}
        env = environment(home, **mail)
        subprocess.run(
            [sys.executable, "-c", BEGIN, hook.url, SECRET], cwd=ROOT, env=env, check=True
        )
        weights = home / "runs" / "quick" / "start" / "checkpoint" / "weights.pt"
        up = Running.start(home, "up", "--no-web", **mail)
        up.until(lambda: attempts(home, "running"), "a stage that runs")
        up.kill_service("reconciler")  # while the round runs
        os.truncate(weights, 1000)  # so that training cannot begin
        up.until(lambda: attempts(home, "failed") == 1, "a stage that failed")
        up.until(lambda: len(hook.got) == 1 == len(post.got), "the first message")
        killed = up.pid_of("reconciler")
        up.kill_service("reconciler")
        assert manage(home, "round_resume", "quick", **mail).returncode == 0
        up.until(lambda: restarted(up, killed), "another reconciler")
        up.until(lambda: attempts(home, "failed") == 2, "the second failure")
        up.until(lambda: len(hook.got) >= 2 <= len(post.got), "the second message")
        time.sleep(0.5)
    told = []
    for got in hook.got:
        head = got.headers
        stamp = int(head["webhook-timestamp"])
        given = (head["webhook-id"], stamp, got.body, head["webhook-signature"])
        assert signature.verify(SECRET, *given)
        told.append(got.data["subject"])
    assert len({got.headers["webhook-id"] for got in hook.got}) == 2
    first, second = told
    assert first.split("/")[0] == second.split("/")[0] and (first[-1], second[-1]) == ("1", "2")
    subjects = [str(message["subject"]) for message in post.got]
    assert len(subjects) == 2 and all("quick" in subject for subject in subjects)
    assert {str(message["to"]) for message in post.got} == {"olaf@example.org"}
