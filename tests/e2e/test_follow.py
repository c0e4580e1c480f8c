"""Following an episode: new turns arrive below, the reader's place stays, the end is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from intraskill_web.episodes.models import Episode
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


def marked(page: Any) -> list[str]:
    """The turns that the outline marks as read."""
    return list(
        page.locator(".outline a.here[aria-current=location]").evaluate_all(
            "links => links.map(link => link.hash)"
        )
    )


def test_a_page_that_was_opened_too_early_catches_up_and_marks_the_newest_turn(
    visit: Any, told: tuple[Round, Path, list[bytes]]
) -> None:
    round_, live, lines = told
    live.write_bytes(b"")
    visitor = visit()
    name = json.loads(lines[0])[0]
    page = visitor.open(f"/episodes/playing/{round_.pk}/{FOLDER}/{name}/")
    assert "not there yet" in page.locator("#t0").inner_text()
    live.write_bytes(b"".join(lines[:3]))
    page.wait_for_selector(".outline a.here[href='#t2']", timeout=WAIT)
    assert "3 messages" in page.locator("#t0").inner_text()
    task = json.loads(lines[0])[2]["reset"]["task_instruction"]
    assert page.locator("h1").inner_text() == task
    live.write_bytes(b"".join(lines[:4]))
    page.wait_for_selector(".outline a.here[href='#t3']", timeout=WAIT)
    assert marked(page) == ["#t3"] and visitor.faults == []


def test_the_outline_marks_the_turn_that_is_read(visit: Any, made: Made) -> None:
    row = Episode.objects.filter(experiment=made.experiment, turns=4).first()
    visitor = visit()
    page = visitor.open(f"/episodes/{row.pk}/")
    seen = [marked(page)]
    for key in "jjjjjkk":  # the last turns never reach the top of the window
        page.keyboard.press(key)
        page.evaluate("new Promise(requestAnimationFrame)")
        seen.append(marked(page))
    assert seen == [[f"#t{n}"] for n in (0, 1, 2, 3, 4, 4, 3, 2)]
    page.locator(".outline a[href='#t4']").click()
    page.wait_for_selector(".outline a.here[href='#t4']")
    page.keyboard.press("k")
    page.wait_for_selector(".outline a.here[href='#t3']")
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_selector(".outline a.here[href='#t0']")
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    page.wait_for_selector(".outline a.here[href='#t4']")
    assert marked(page) == ["#t4"] and visitor.faults == []
