"""Following an episode: new turns arrive below, the reader's place stays, the end is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from intraskill_web.experiments.models import Round, Stage
from jobs.mirror import evaluations
from tests.trainer.fakes import FakePolicy, shopper
from tests.trainer.rollout.test_driver import requests
from tests.web.factories import Made
from trainer.files import append_jsonl
from trainer.rollout.driver import run_episodes
from trainer.rollout.live import LiveFile
from trainer.shop.world import load_world

FOLDER = "validate/bare"
WAIT = 6000  # ms; the page asks once a second


@pytest.fixture
def told(made: Made) -> tuple[Round, Path, list[bytes]]:
    """A validation that runs, its live file, and the lines that will stand in it."""
    round_ = made.rounds[1]
    Stage.objects.filter(round=round_, kind="validate").update(state="running")
    live = LiveFile(round_.folder / FOLDER / "live" / "batch.jsonl")
    world = load_world("mini")
    [result] = run_episodes(world, FakePolicy(shopper()), requests(world, 1), live=live)
    lines = live.path.read_bytes().splitlines(keepends=True)
    append_jsonl(round_.folder / "whole.jsonl", [result.trace])
    live.path.write_bytes(b"".join(lines[:3]))
    return round_, live.path, lines


def test_turns_arrive_and_the_readers_place_stays(
    visit: Any, told: tuple[Round, Path, list[bytes]]
) -> None:
    round_, live, lines = told
    name = json.loads(lines[0])[0]
    visitor = visit()
    visitor.page.set_viewport_size({"width": 1024, "height": 400})
    page = visitor.open(f"/episodes/playing/{round_.pk}/{FOLDER}/{name}/")
    assert page.locator("#live-turns .turn").count() == 2
    live.write_bytes(b"".join(lines[:4]))
    page.wait_for_selector("#t3", timeout=WAIT)
    assert page.locator("#follow").get_attribute("aria-pressed") == "true"
    assert page.evaluate("scrollY") > 0
    page.evaluate("scrollTo(0, 0)")  # the reader looks at the beginning
    page.wait_for_selector("#follow[aria-pressed=false]")
    page.locator("#t1 details summary").first.click()
    place = page.locator("#t1").bounding_box()["y"]  # in the window
    live.write_bytes(b"".join(lines))
    page.wait_for_selector("[data-state=ended]", timeout=WAIT)
    assert abs(page.locator("#t1").bounding_box()["y"] - place) <= 1
    assert page.locator("#t1 details[open]").count() == 1
    file = round_.folder / FOLDER / "traces.jsonl"
    file.write_bytes((round_.folder / "whole.jsonl").read_bytes())
    live.unlink()
    run = round_.experiment.folder
    evaluations.follow(round_, run, round_.folder / FOLDER, purpose="bare", arm="bare")
    page.get_by_role("link", name="Open the recorded episode").click(timeout=WAIT)
    page.wait_for_selector(".call.end-ok, .call.end-bad")
    assert visitor.faults == []
