"""The page on scripts: its example is run as it stands against a server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, User
from pytest_django.live_server_helper import LiveServer

from intraskill_web.core.models import AuditEvent
from intraskill_web.experiments.models import Experiment
from intraskill_web.experiments.perform import PERFORM

DOCS = Path(settings.BASE_DIR) / "docs"


def blocks(language: str) -> str:
    text = (DOCS / language / "api.md").read_text(encoding="utf-8")
    return "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_example_signs_in_reads_and_acts(live_server: LiveServer, home: Path) -> None:
    user = User.objects.create_user("script", password="a long word")
    user.groups.add(Group.objects.get(name="operator"))
    Experiment.objects.create(name="demo", rounds_planned=0)  # so that a start is refused
    done = subprocess.run(
        ["bash", "-euc", blocks("en")], capture_output=True, text=True, check=True, timeout=60,
        env={**os.environ, "URL": live_server.url, "NAME": "script", "PASSWORD": "a long word"},
    )  # fmt: skip
    status, answers = done.stdout.split("\n", 1)
    assert status == "302"
    page, end = json.JSONDecoder().raw_decode(answers)
    assert page["name"] == "demo"
    refusal = json.loads(answers[end:])
    assert refusal["ok"] is False and "planned" in refusal["error"]
    assert not AuditEvent.objects.filter(action="round.start").exists()


def test_both_languages_tell_the_same() -> None:
    texts = [(DOCS / language / "api.md").read_text(encoding="utf-8") for language in ("en", "zh")]
    commands = [re.sub(r" +#.*", "", blocks(language)) for language in ("en", "zh")]
    assert commands[0] == commands[1] != ""
    codes = [re.findall(r"^\| (\d+) ", text, re.MULTILINE) for text in texts]
    assert codes[0] == codes[1] == ["400", "401", "403", "404", "405", "409", "500", "503"]
    for text in texts:
        assert all(f"`{action}`" in text for action in PERFORM)
