"""Catalogues are compiled without gettext's tools, and as those would."""

from __future__ import annotations

import gettext
from pathlib import Path

import pytest

from intraskill_web.core.po import compile_file

CATALOGUE = r"""
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=1; plural=0;\n"

#: templates/a.html:3
msgid "round"
msgstr "轮"

msgctxt "verb"
msgid "round"
msgstr "取整"

msgid "%(n)s step"
msgid_plural "%(n)s steps"
msgstr[0] "%(n)s 步"

#, fuzzy
msgid "gate"
msgstr "门"

msgid "not translated"
msgstr ""

msgid "two "
"lines\n"
msgstr "两"
"行\n"
msgid "without an empty line before"
msgstr "前无空行"

#~ msgid "obsolete"
#~ msgstr "过时"
"""


@pytest.fixture
def catalogue(tmp_path: Path) -> gettext.GNUTranslations:
    (tmp_path / "django.po").write_text(CATALOGUE, encoding="utf-8")
    assert compile_file(tmp_path / "django.po", tmp_path / "django.mo") == 6
    with (tmp_path / "django.mo").open("rb") as handle:
        return gettext.GNUTranslations(handle)


def test_plain_contextual_and_long_strings_are_translated(
    catalogue: gettext.GNUTranslations,
) -> None:
    assert catalogue.gettext("round") == "轮"
    assert catalogue.pgettext("verb", "round") == "取整"
    assert catalogue.gettext("two lines\n") == "两行\n"
    assert catalogue.gettext("without an empty line before") == "前无空行"


def test_plurals_are_translated(catalogue: gettext.GNUTranslations) -> None:
    assert catalogue.ngettext("%(n)s step", "%(n)s steps", 2) == "%(n)s 步"


def test_fuzzy_missing_and_obsolete_entries_stay_english(
    catalogue: gettext.GNUTranslations,
) -> None:
    for text in ("gate", "not translated", "obsolete"):
        assert catalogue.gettext(text) == text


def test_a_broken_catalogue_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "django.po").write_text('msgid "a"\nmsgstr unquoted\n', encoding="utf-8")
    with pytest.raises(ValueError, match="line 2"):
        compile_file(tmp_path / "django.po", tmp_path / "django.mo")
