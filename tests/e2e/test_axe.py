"""Every page as a machine reads it: nothing that axe-core calls serious, nothing untranslated.

Widths, themes and languages are paired so that each meets each other at least once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from intraskill_web.configs.models import ConfigRevision
from intraskill_web.configs.services import add_revision
from intraskill_web.core.po import entries
from intraskill_web.episodes.models import Episode
from intraskill_web.gates.models import GateRun
from intraskill_web.review.models import Override
from intraskill_web.review.overriding import choices, make_override
from intraskill_web.review.services import Subject, add_event
from tests.e2e.accessibility import serious
from tests.web.factories import Made

PATHS = [
    "/",
    "/experiments/demo/",
    "/experiments/demo/internalisation/",
    "/experiments/demo/rounds/0/",
    "/experiments/demo/rounds/0/gate/",
    "/experiments/demo/rounds/1/gate/",
    "/experiments/demo/rounds/0/masks/",
    "/experiments/demo/rounds/0/cards/",
    "/experiments/demo/rounds/0/panels/outcome/",
    "/experiments/demo/skills/1/",
    "/experiments/demo/skills/1/override/",
    "/experiments/demo/overrides/OVERRIDE/",
    "/experiments/demo/chunks/brand-first/",
    "/experiments/demo/test/",
    "/ledger/",
    "/gates/",
    "/skills/",
    "/episodes/?experiment=demo&purpose=train",
    "/episodes/EPISODE/",
    "/jobs/",
    "/jobs/attempts/ATTEMPT/",
    "/help/",
    "/password/",
]
ADMIN_PATHS = [
    "/admin/",
    "/admin/configs/configrevision/",
    "/admin/configs/configrevision/add/",
    "/admin/configs/configrevision/add/?kind=gate",
    "/admin/configs/configrevision/add/?kind=analyst&as=yaml",
    "/admin/configs/configrevision/REVISION/change/",
    "/admin/gates/contribution/",
]
WINDOWS = [
    (390, "dark", "zh-CN"),
    (390, "light", "en-US"),
    (1024, "dark", "en-US"),
    (1920, "light", "zh-CN"),
]
TEXTS = """() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (!parent.closest("script, style, pre, code, .mono, [lang]:not(html)"))
      found.push(walker.currentNode.data.replace(/\\s+/g, " ").trim());
  }
  for (const e of document.querySelectorAll("[aria-label], [title], [placeholder]"))
    if (!e.closest("[lang]:not(html)"))
      for (const name of ["aria-label", "title", "placeholder"])
        found.push(e.getAttribute(name) ?? "");
  return found;
}"""


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


def english() -> set[str]:
    """Texts of the catalogue whose Chinese differs, without placeholders and bare identifiers."""
    path = Path(settings.BASE_DIR) / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"
    found = set()
    for entry in entries(path.read_text(encoding="utf-8")):
        text = entry["msgid"].replace("%%", "%")
        said = " " in text or text[:1].isupper()
        if said and "%(" not in text and entry["msgid"] != entry.get("msgstr"):
            found.add(text)
    return found


def real(path: str, made: Made) -> str:
    episode = Episode.objects.filter(purpose="train", skill_count__gte=2).order_by("pk")[0]
    places = {"EPISODE": episode.pk, "ATTEMPT": made.attempts[0].pk, "REVISION": 1}
    override = Override.objects.first()
    places["OVERRIDE"] = override.pk if override else 0
    for name, value in places.items():
        path = path.replace(name, str(value))
    return path


def faults_of(page: Any, axe: str, watched: set[str]) -> list[str]:
    """Serious and critical findings, and texts that should have been translated."""
    untranslated = [f"untranslated: {t}" for t in page.evaluate(TEXTS) if t in watched]
    return serious(page, axe) + untranslated


def walk(visitor: Any, paths: list[str], axe: str, locale: str) -> list[str]:
    """All faults, each with its page."""
    watched = english() if locale.startswith("zh") else set()
    faults: list[str] = []
    for path in paths:
        page = visitor.open(path)
        polls = [f for f in visitor.faults if "part=live" in f]  # cut off by leaving the page
        found = [f for f in visitor.faults if f not in polls] + faults_of(page, axe, watched)
        if visitor.overflow() > 0:
            found.append(f"{visitor.overflow()} px wider than the window")
        visitor.faults.clear()
        faults += [f"{path}: {fault}" for fault in found]
    return faults


@pytest.mark.parametrize(
    "window",
    [WINDOWS[0], WINDOWS[-1], *(pytest.param(w, marks=pytest.mark.long) for w in WINDOWS[1:-1])],
    ids=str,
)
def test_no_page_has_a_serious_fault(
    full: Made, visit: Any, axe: str, window: tuple[int, str, str]
) -> None:
    paths = [real(path, full) for path in PATHS]
    faults = walk(visit(*window), paths, axe, window[2])
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    "window", [WINDOWS[0], pytest.param(WINDOWS[-1], marks=pytest.mark.long)], ids=str
)
@pytest.mark.usefixtures("full")
def test_the_administration_has_none_either(
    visit: Any, axe: str, admin: Any, window: tuple[int, str, str]
) -> None:
    visitor = visit(*window)
    client = Client()
    client.force_login(admin)
    name = settings.SESSION_COOKIE_NAME
    cookie = {"name": name, "value": client.cookies[name].value, "url": visitor.address}
    visitor.context.add_cookies([cookie])
    newest = ConfigRevision.objects.latest("pk").pk
    paths = [path.replace("REVISION", str(newest)) for path in ADMIN_PATHS]
    faults = walk(visitor, paths, axe, window[2])
    assert not faults, "\n".join(faults)
