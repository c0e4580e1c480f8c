"""What the scripts do: keys, theme, language, confirmation, polling, the followed log."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import expect

from intraskill_web.experiments.models import Experiment, Round, Stage
from intraskill_web.monitoring.models import SignalEvent, SignalRead
from tests.web.factories import Made

ROUND = "/experiments/demo/rounds/1/"


def test_the_theme_is_switched_and_remembered(made: Made, visit: Any) -> None:
    page = visit().open("/")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("[data-theme-toggle]").click()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    after = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert after != before
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == after


def test_the_language_is_switched_and_the_page_stays(made: Made, visit: Any) -> None:
    page = visit().open(ROUND)
    page.get_by_role("button", name="切换到中文").click()
    expect(page.locator("h1")).to_have_text("第 1 轮")
    assert page.url.endswith(ROUND)
    page.get_by_role("button", name="Switch to English").click()
    expect(page.locator("h1")).to_have_text("Round 1")


def test_everything_can_be_reached_by_keyboard(made: Made, visit: Any) -> None:
    page = visit().open("/")
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "Skip to content"
    page.locator("body").press("/")
    assert page.locator(":focus").get_attribute("name") == "q"
    page.locator(":focus").press("?")
    assert not page.locator("#help").is_visible()
    page.locator(":focus").blur()
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    page.locator("#help").wait_for(state="hidden")
    page.keyboard.press("j")
    page.locator("tr.on").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url("**/experiments/demo/")


TWICE = """key => { for (let n = 0; n < 2; n++)  // within one frame, as a held key may come
  document.body.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true})) }"""


def test_turns_and_episodes_by_key(made: Made, visit: Any) -> None:
    visitor = visit()
    page = visitor.open("/episodes/?experiment=demo&purpose=train&step=1")
    page.keyboard.press("j")
    page.keyboard.press("j")
    second = page.locator("tr.on a.nm").get_attribute("href")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{second}")
    page.evaluate(TWICE, "j")
    assert page.locator(".turn.on").get_attribute("id") == "t2"  # from the prompt, which is read
    first = page.url
    page.keyboard.press("n")
    page.wait_for_url(lambda url: url != first)
    page.keyboard.press("p")
    page.wait_for_url(first)


def test_stopping_asks_first(made: Made, visit: Any) -> None:
    page = visit().open(ROUND)
    page.get_by_role("button", name="Stop round").click()
    dialog = page.locator("#confirm-stop")
    assert dialog.is_visible()
    assert Stage.objects.filter(state="running").count() == 1
    dialog.get_by_role("button", name="Keep running").click()
    assert not dialog.is_visible()
    page.get_by_role("button", name="Stop round").click()
    dialog.get_by_role("button", name="Stop round").click()
    expect(page.locator(".toast")).to_be_visible()
    assert Stage.objects.filter(state="stopping").count() == 1


def test_a_greyed_button_does_nothing_and_says_why(made: Made, visit: Any) -> None:
    page = visit().open(ROUND)
    button = page.get_by_role("button", name="Resume")
    button.click(force=True)
    assert page.url.endswith(ROUND)
    why = page.locator(f"#{button.get_attribute('aria-describedby')}")
    assert why.inner_text() == "Train is running; stop it first"


def test_a_start_that_takes_seconds_says_so_and_is_sent_once(made: Made, visit: Any) -> None:
    Stage.objects.exclude(state="succeeded").update(state="succeeded")
    Round.objects.update(state="succeeded")
    Experiment.objects.update(rounds_planned=made.rounds[-1].number + 2)
    page = visit().open("/experiments/demo/")
    page.evaluate(  # as if no answer came
        "addEventListener('submit', (e) => { window.sent = (window.sent ?? 0) + 1;"
        " e.preventDefault(); })"
    )
    button = page.get_by_role("button", name="Start round")
    button.click()
    why = page.locator("#why-start")
    assert why.inner_text().startswith("Checking what the round will read")
    assert (button.get_attribute("aria-busy"), why.get_attribute("aria-live")) == ("true", "polite")
    button.click(force=True)
    button.press("Enter")
    assert page.evaluate("window.sent") == 1
    assert Round.objects.count() == len(made.rounds)


@pytest.mark.parametrize("width", [390, 1440])
def test_playing_the_test_again_takes_a_reason_and_a_confirmation(
    made: Made, visit: Any, width: int
) -> None:
    Stage.objects.update(state="succeeded")
    Round.objects.update(state="succeeded")
    Experiment.objects.update(rounds_planned=2)
    visitor = visit(width=width)
    page = visitor.open("/experiments/demo/")
    page.locator("#b-more").click()
    assert visitor.overflow() <= 0
    for key in ("extend", "until"):
        fits = page.locator(f"#b-{key}").evaluate("(b) => b.scrollWidth <= b.clientWidth")
        assert fits, f"{key} has room for its words"
    page.locator("#b-extend").click()
    assert not page.locator("#confirm-extend").is_visible(), "the reason comes first"
    page.locator("form[action$='extend/'] [name=reason]").fill("it still rises")
    page.locator("#b-extend").click()
    page.locator("#confirm-extend button:not([type=button])").click()
    page.locator(".toast").wait_for()
    assert Experiment.objects.get().rounds_planned == 3


def poll(page: Any) -> int:
    """Ask now instead of waiting for the timer; the status of the answer."""
    with page.expect_response(lambda r: "part=live" in r.url) as answer:
        page.evaluate("htmx.trigger(document.getElementById('poll'), 'poll')")
    page.wait_for_timeout(50)
    return int(answer.value.status)


def test_a_poll_brings_progress_and_title_and_leaves_the_rest_alone(made: Made, visit: Any) -> None:
    page = visit().open(ROUND)
    page.evaluate("document.querySelector('#r-outcome .card').dataset.mine = '1'")
    page.evaluate("document.querySelector('#r-lane .lane').dataset.mine = '1'")
    stage = Stage.objects.get(state="running")
    stage.done += 1
    stage.save()
    assert poll(page) == 200
    assert page.title().startswith(f"{stage.done}/")
    assert page.locator("#r-lane [aria-current]").inner_text().count(f"{stage.done} of") == 1
    assert page.locator("#r-outcome [data-mine]").count() == 1
    assert page.locator("#r-lane [data-mine]").count() == 0
    assert poll(page) == 304


def test_a_poll_never_takes_away_an_open_dialog(made: Made, visit: Any) -> None:
    page = visit().open(ROUND)
    page.get_by_role("button", name="Stop round").click()
    experiment = Experiment.objects.get()
    experiment.pause_after_stage = True
    experiment.save()
    assert poll(page) == 200
    assert page.locator("#confirm-stop").is_visible()
    page.locator("#confirm-stop").get_by_role("button", name="Keep running").click()
    stage = Stage.objects.get(state="running")
    stage.save()
    assert poll(page) == 200
    assert page.get_by_role("button", name="Do not pause").is_visible()


def test_a_poll_keeps_what_was_scrolled(made: Made, visit: Any) -> None:
    page = visit(320).open("/experiments/demo/")
    page.evaluate("document.querySelector('#e-survival .scroll').scrollLeft = 20")
    experiment = Experiment.objects.get()
    experiment.rounds_planned += 1
    experiment.save()
    assert poll(page) == 200
    assert page.evaluate("document.querySelector('#e-survival .scroll').scrollLeft") == 20


def test_the_log_follows_until_the_reader_scrolls_up(made: Made, visit: Any) -> None:
    attempt = made.attempts[-1]
    page = visit().open(f"/jobs/attempts/{attempt.pk}/")
    log = page.locator(".log")
    with attempt.log_file.open("a") as handle:
        handle.write("2026-01-01T00:00:00 INFO brand new line\n")
    log.get_by_text("brand new line").wait_for()
    assert log.evaluate("e => e.scrollHeight - e.scrollTop - e.clientHeight < 8")
    log.evaluate("e => { e.scrollTop = 0; }")
    button = page.locator("[data-follow]")
    expect(button).to_have_text("Paused")
    button.click()
    assert button.inner_text() == "Following"
    assert log.evaluate("e => e.scrollHeight - e.scrollTop - e.clientHeight < 8")


def test_ages_tick(made: Made, visit: Any) -> None:
    attempt = made.attempts[-1]
    attempt.heartbeat_at = timezone.now()
    attempt.save()
    page = visit().open("/jobs/")
    first = page.locator("#q-now time").inner_text()
    expect(page.locator("#q-now time")).not_to_have_text(first)
    assert page.locator("#q-now time").inner_text().endswith("s ago")


def test_the_zoom_page_draws_and_keeps_its_window_in_the_address(made: Made, visit: Any) -> None:
    visitor = visit()
    page = visitor.open("/experiments/demo/zoom/?metric=success_rate")
    page.locator(".js-plotly-plot .scatterlayer .trace").first.wait_for()
    assert page.locator("#zoom-count").inner_text().endswith("points")
    page.evaluate("Plotly.relayout('zoom', {'xaxis.range[0]': 2, 'xaxis.range[1]': 4})")
    expect(page).to_have_url(re.compile(r"[?&]x0=2(&|$)"))
    page.reload()
    page.locator(".js-plotly-plot .scatterlayer .trace").first.wait_for()
    assert page.evaluate("document.getElementById('zoom').layout.xaxis.range") == [2, 4]
    assert visitor.faults == []


def test_the_bell_and_the_title_count_with_the_pages_own_poll(made: Made, visit: Any) -> None:
    page = visit().open(ROUND)
    plain = page.title()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for n in (1, 2):
        SignalEvent.objects.create(
            round=made.rounds[0], kind="technical", subject=str(n), level="open"
        )
        page.evaluate("htmx.trigger(document.getElementById('poll'), 'poll')")
        page.locator(".bell b", has_text=str(n)).wait_for()
        assert page.title() == f"({n}) {plain}"
        assert page.locator(".bell").get_attribute("aria-label") == f"Inbox, {n} unread"
    question = page.locator(".bell").get_attribute("data-ask")
    assert question and not any(url.endswith(question) for url in asked), asked
    SignalRead.objects.bulk_create(
        SignalRead(event=event, user=user)
        for event in SignalEvent.objects.all()
        for user in User.objects.all()
    )
    page.evaluate("htmx.trigger(document.getElementById('poll'), 'poll')")
    page.locator(".bell b").wait_for(state="detached")
    assert page.title() == plain
