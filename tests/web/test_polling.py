"""A poll without news is a 304; with news it brings fragments, and only what changed has a new
token.
"""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.utils import timezone

from intraskill_web.experiments.models import Stage
from tests.web.factories import Made

PATHS = ["/", "/experiments/demo/", "/experiments/demo/rounds/1/", "/jobs/"]
TOKEN = re.compile(r'id="([\w-]+)"(?: hx-swap-oob="outerHTML")? class="[^"]*" data-token="(\w+)"')


def tokens(text: str) -> dict[str, str]:
    return dict(TOKEN.findall(text))


@pytest.mark.parametrize("path", PATHS)
def test_nothing_new_is_a_304_without_a_body(made: Made, viewer_client: Client, path: str) -> None:
    first = viewer_client.get(f"{path}?part=live")
    again = viewer_client.get(f"{path}?part=live", headers={"If-None-Match": first["ETag"]})
    assert first.status_code == 200
    assert again.status_code == 304
    assert again.content == b""
    assert again["ETag"] == first["ETag"]


@pytest.mark.parametrize("path", PATHS)
def test_a_poll_brings_the_fragments_of_the_page_and_no_shell(
    made: Made, viewer_client: Client, path: str
) -> None:
    page = viewer_client.get(path).content.decode()
    poll = viewer_client.get(f"{path}?part=live").content.decode()
    assert "<html" not in poll
    assert tokens(poll)
    assert tokens(poll) == tokens(page)


def test_progress_changes_the_lane_and_leaves_the_panels(made: Made, viewer_client: Client) -> None:
    path = "/experiments/demo/rounds/1/?part=live"
    before = viewer_client.get(path)
    stage = Stage.objects.get(round=made.rounds[1], kind="train")
    stage.done += 1
    stage.save()
    after = viewer_client.get(path, headers={"If-None-Match": before["ETag"]})
    assert after.status_code == 200
    old, new = tokens(before.content.decode()), tokens(after.content.decode())
    changed = {name for name in new if new[name] != old[name]}
    assert "r-lane" in changed
    assert changed <= {"r-lane", "r-head", "r-signals"}


def test_the_log_is_replaced_only_when_another_attempt_runs(
    made: Made, viewer_client: Client
) -> None:
    path = "/experiments/demo/rounds/1/?part=live"
    before = tokens(viewer_client.get(path).content.decode())["r-log"]
    attempt = made.attempts[-1]
    attempt.log_file.write_text("2026-01-01T00:00:00 INFO more\n")
    attempt.heartbeat_at = timezone.now()
    attempt.save()
    assert tokens(viewer_client.get(path).content.decode())["r-log"] == before


def test_languages_do_not_share_a_state(made: Made, viewer_client: Client) -> None:
    english = viewer_client.get("/?part=live", headers={"Accept-Language": "en"})
    chinese = viewer_client.get("/?part=live", headers={"Accept-Language": "zh-CN"})
    assert english["ETag"] != chinese["ETag"]


def test_the_answer_says_whether_something_runs(made: Made, viewer_client: Client) -> None:
    assert viewer_client.get("/experiments/demo/rounds/1/?part=live")["X-Active"] == "1"
    assert viewer_client.get("/experiments/demo/rounds/0/?part=live")["X-Active"] == "0"
