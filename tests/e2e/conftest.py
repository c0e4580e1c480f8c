"""A real browser against a live server. Skipped, visibly, where no Chromium is found."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.test import Client

from intraskill_web.configs.services import add_revision
from intraskill_web.core.po import compile_stale
from intraskill_web.gates.models import GateRun
from intraskill_web.review.overriding import choices, make_override
from intraskill_web.review.services import Subject, add_event
from tests.web.factories import Made, make_experiment

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

WINDOWS = [  # widths, themes and languages, paired so that each meets each other at least once
    (390, "dark", "zh-CN"),
    (390, "light", "en-US"),
    (1024, "dark", "en-US"),
    (1920, "light", "zh-CN"),
]
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--mute-audio",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.e2e)


def chromium() -> str | None:
    """The browser's path: ``CHROMIUM``, Debian's, or what the system calls it."""
    known = (os.environ.get("CHROMIUM"), "/usr/bin/chromium", shutil.which("chromium-browser"))
    return next((path for path in known if path and Path(path).exists()), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser a file: its driver's event loop must be gone when tests of other files begin."""
    path = chromium()
    if path is None:
        pytest.skip("no Chromium: install it (Debian: apt install chromium) or set CHROMIUM")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    # The driver runs an event loop in this thread; tests use the ORM beside it, not in it.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield started
        started.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def made(transactional_db: None, home: Path) -> Made:
    """Two rounds, the second in training, in a home of their own."""
    compile_stale(Path(folder) for folder in settings.LOCALE_PATHS)
    return make_experiment(steps=6, val_tasks=20)


@pytest.fixture
def full(made: Made, operator: Any) -> Made:
    """The made experiment with a review, an override and a configuration."""
    gate = GateRun.objects.select_related("round__experiment").get(round=made.rounds[0])
    for kind, text in (("comment", "Looks sound"), ("label", "ready"), ("sign", "")):
        add_event(Subject(made.experiment, gate=gate), kind, text, actor=operator)
    base = made.experiment.skill_versions.get(number=1)
    keys = [c.key for c in choices(base) if c.kept]
    make_override(base, keys[1:], "Less is enough", actor=operator)
    add_revision("gate", {}, "profile: standard\n", reason="The start", actor=operator)
    return made


class Visitor:
    """A logged-in person with a window; remembers everything the console complained about."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.context = context
        self.page: Page = context.new_page()
        self.address = address
        self.faults: list[str] = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.faults.append(f"page error: {error}"))
        self.page.on("requestfailed", self._failed)

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.type}: {message.text}")

    def _failed(self, request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # a poll that leaving the page cut off
            self.faults.append(f"failed: {request.url} ({request.failure})")

    def open(self, path: str) -> Page:
        """Go to ``path`` and wait until its scripts ran."""
        self.page.goto(self.address + path, wait_until="load")
        return self.page

    def overflow(self) -> int:
        """Pixels by which the page is wider than the window."""
        return int(
            self.page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
        )


@pytest.fixture
def visit(browser: Browser, live_server: Any, operator: Any) -> Iterator[Any]:
    """``visit(width=390, scheme="dark", locale="zh-CN")`` gives a Visitor with the role
    operator.
    """
    contexts: list[BrowserContext] = []

    def start(width: int = 1440, scheme: str = "light", locale: str = "en-US") -> Visitor:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
            locale=locale,
            reduced_motion="reduce",
        )
        contexts.append(context)
        client = Client()
        client.force_login(operator)
        name = settings.SESSION_COOKIE_NAME
        context.add_cookies(
            [{"name": name, "value": client.cookies[name].value, "url": live_server.url}]
        )
        return Visitor(context, live_server.url)

    yield start
    for context in contexts:
        context.close()


@pytest.fixture
def axe() -> str:
    """The text of axe-core; the tests are skipped, visibly, without the package."""
    package = pytest.importorskip(
        "axe_playwright_python", reason="axe-playwright-python is not installed"
    )
    return (Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
