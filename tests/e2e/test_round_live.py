"""A round page that stays open: the state beside the log follows, a silent server is said."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from playwright.sync_api import expect

from intraskill_web.experiments.models import Attempt, Stage
from tests.web.factories import Made

POLL = "htmx.trigger('#poll', 'poll')"


def test_the_log_tells_that_its_attempt_has_stopped(made: Made, visit: Any) -> None:
    stage = Stage.objects.get(round=made.rounds[1], kind="train")
    attempt = stage.attempts.latest("number")
    attempt.log_file.parent.mkdir(parents=True, exist_ok=True)
    attempt.log_file.write_text("a first line\n")
    visitor = visit()
    page = visitor.open("/experiments/demo/rounds/1/")
    expect(page.locator("#log-state")).to_have_text("Running")
    page.locator("[data-follow]").click()
    expect(page.locator("[data-follow]")).to_have_text("Paused")
    Attempt.objects.filter(pk=attempt.pk).update(state="stopped", ended_at=timezone.now())
    stage.state = "stopped"
    stage.save()
    page.evaluate(POLL)
    expect(page.locator("#log-state")).to_have_text("Stopped")
    expect(page.locator("#log-follow")).to_contain_text("Complete")
    expect(page.locator("#log .x")).to_have_text("a first line")
    assert visitor.faults == []


def test_a_page_says_that_the_server_does_not_answer(made: Made, visit: Any) -> None:
    visitor = visit()
    page = visitor.open("/experiments/demo/rounds/1/")
    expect(page.locator("#offline")).to_be_hidden()
    page.route("**/*part=live*", lambda route: route.abort())
    page.evaluate(POLL)
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer")
    page.unroute("**/*part=live*")
    page.evaluate(POLL)
    expect(page.locator("#offline")).to_be_hidden()


def test_enter_opens_the_marked_row_whatever_was_clicked_before(made: Made, visit: Any) -> None:
    visitor = visit()
    page = visitor.open("/episodes/?experiment=demo")
    page.locator("summary", has_text="Filter").first.click()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/episodes/*/?experiment=demo")
    assert visitor.faults == []
