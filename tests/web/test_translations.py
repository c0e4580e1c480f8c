"""Every text of the pages is translated, and no translation breaks a placeholder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.utils.functional import Promise

from intraskill_web.core import definitions, labels
from intraskill_web.core.po import entries
from intraskill_web.episodes.behaviour_metrics import SHOWN
from tests.web.factories import Made
from tests.web.html import Page

CATALOGUE = Path(settings.BASE_DIR) / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"
PLACEHOLDER = re.compile(r"%\((\w+)\)[0-9.]*[a-z]|<\w+>|</\w+>")
CJK = re.compile("[\u4e00-\u9fff]")
LATIN = re.compile(r"[a-z]{3,}", re.IGNORECASE)
SAME_IN_BOTH = {"rho", "β [95 %%]", "Tokens", "tokens"}


def messages() -> dict[str, list[str]]:
    """msgid → its translations."""
    found: dict[str, list[str]] = {}
    for entry in entries(CATALOGUE.read_text(encoding="utf-8")):
        if entry["msgid"]:
            key = (entry.get("msgctxt", "") + "\x04" + entry["msgid"]).lstrip("\x04")
            found[key] = [v for k, v in entry.items() if k.startswith("msgstr")]
    return found


def test_every_message_has_a_chinese_text() -> None:
    missing = [
        key
        for key, texts in messages().items()
        if key not in SAME_IN_BOTH
        and not (
            all(texts) and (CJK.search(texts[0]) or not LATIN.search(PLACEHOLDER.sub("", key)))
        )
    ]
    assert missing == []


def test_translations_keep_their_placeholders() -> None:
    for key, texts in messages().items():
        for text in texts:
            wanted, found = sorted(PLACEHOLDER.findall(key)), sorted(PLACEHOLDER.findall(text))
            assert found == wanted, key


def test_the_catalogue_holds_every_text_of_code_and_templates(tmp_path: Path) -> None:
    if shutil.which("xgettext") is None:
        pytest.skip("xgettext is not installed")
    root = Path(settings.BASE_DIR)
    tree = tmp_path / "tree"
    for name in ("intraskill_web", "templates", "jobs"):
        shutil.copytree(root / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tree / "locale").mkdir()
    subprocess.run(
        [sys.executable, "-m", "django", "makemessages", "-l", "zh_Hans", "--no-location", "-v0"],
        cwd=tree,
        check=True,
        env={name: v for name, v in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"},
    )
    text = (tree / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po").read_text(encoding="utf-8")
    extracted = {
        (e.get("msgctxt", "") + "\x04" + e["msgid"]).lstrip("\x04")
        for e in all_entries(text)
        if e["msgid"]
    }
    assert extracted - messages().keys() == set()


def all_entries(text: str) -> list[dict[str, str]]:
    """Entries of an extracted template, also those it guessed."""
    return list(entries(text.replace(", fuzzy", "")))


def test_words_for_states_and_statuses_are_lazy_texts() -> None:
    for words in (
        labels.STATES,
        labels.CHUNK_STATUS,
        labels.PURPOSES,
        labels.TRIAGE,
        labels.STAGES,
    ):
        assert all(isinstance(word, Promise) for word in words.values())


def test_definitions_exist_in_both_languages() -> None:
    english, chinese = definitions.definitions("en"), definitions.definitions("zh-hans")
    assert english.keys() == chinese.keys()
    for key, entry in chinese.items():
        assert CJK.search(entry.title), key
        assert CJK.search(entry.text), key
        assert bool(entry.denominator) == bool(english[key].denominator), key
        assert bool(entry.misread) == bool(english[key].misread), key


HELP = re.compile(r"""\{% (?:help |card [^%]*\bhelp=)["'](\w+)["']""")


def test_every_question_mark_has_its_definition_and_every_definition_its_question_mark() -> None:
    root = Path(settings.BASE_DIR) / "templates"
    used = {key for path in root.rglob("*.html") for key in HELP.findall(path.read_text())}
    used |= {
        "scored_rate",
        "technical_drops",
        "zero_spread",
        "protocol_errors",
        "step_time",
        "throughput",
        *(f"behaviour_{metric}" for metric in SHOWN),  # beside the chosen metric
    }
    assert used == definitions.definitions("en").keys()


@pytest.mark.parametrize(
    "path",
    ["/", "/experiments/demo/", "/experiments/demo/rounds/1/", "/experiments/demo/rounds/0/gate/",
     "/experiments/demo/skills/1/", "/episodes/?experiment=demo", "/jobs/", "/gates/", "/skills/"],
)  # fmt: skip
def test_a_chinese_page_has_no_english_sentences(
    made: Made, viewer_client: Client, path: str
) -> None:
    html = viewer_client.get(path, headers={"Accept-Language": "zh-CN"}).content.decode()
    assert '<html lang="zh-CN"' in html
    english = [key for key in messages() if len(key) > 14 and " " in key and "%" not in key]
    text = Page(html).text
    assert [key for key in english if key in text] == []


def test_the_language_button_switches_and_stays(viewer_client: Client) -> None:
    viewer_client.post("/language/", {"language": "zh-hans", "next": "/"})
    assert '<html lang="zh-CN"' in viewer_client.get("/").content.decode()
    viewer_client.post("/language/", {"language": "en", "next": "/"})
    assert '<html lang="en"' in viewer_client.get("/").content.decode()
