"""Chapters → HTML in each language. The first lies at the root, the others in folders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.template.loader import render_to_string
from django.utils import translation

from intraskill_web.reports.site.blocks import Chapter
from intraskill_web.reports.site.chapters import chapters
from intraskill_web.reports.site.inputs import Inputs
from trainer.errors import InputError


@dataclass(frozen=True, slots=True)
class Language:
    """How a report calls a language, and how Django and HTML do."""

    key: str
    django: str
    html: str
    name: str


LANGUAGES = {
    "en": Language("en", "en", "en", "English"),
    "zh": Language("zh", "zh-hans", "zh-CN", "中文"),
}


def languages_named(keys: Sequence[str]) -> list[Language]:
    """The languages asked for. Raises InputError for an unknown or repeated one."""
    if not keys or len(set(keys)) != len(keys) or any(key not in LANGUAGES for key in keys):
        raise InputError(
            "must name languages once each", field="lang", value=",".join(keys),
            remedy=f"known: {', '.join(LANGUAGES)}",
        )  # fmt: skip
    return [LANGUAGES[key] for key in keys]


def pages(
    inputs: Inputs, languages: Sequence[Language], facts: dict[str, Any]
) -> Iterator[tuple[str, str]]:
    """(path, HTML) of every page of a run's report."""
    return render(lambda: chapters(inputs), languages, facts, title=inputs.title)


def render(
    make: Callable[[], list[Chapter]],
    languages: Sequence[Language],
    facts: dict[str, Any],
    *,
    title: str | None,
) -> Iterator[tuple[str, str]]:
    """(path, HTML) of the chapters that ``make`` gives in each active language.

    ``facts`` are name, version and commit; without ``title`` the first chapter's is taken.
    """
    for place, language in enumerate(languages):
        folder, root = ("", "") if place == 0 else (f"{language.key}/", "../")
        with translation.override(language.django):
            made = make()
            for chapter in made:
                context = {
                    "chapter": chapter,
                    "chapters": made,
                    "root": root,
                    "document": "comparison" if title is None else "analysis",
                    "site": {
                        **facts,
                        "title": made[0].title if title is None else title,
                        "html_lang": language.html,
                    },
                    "other_languages": [
                        {
                            "href": _towards(place, i, other, chapter.key),
                            "name": other.name,
                            "html_lang": other.html,
                        }
                        for i, other in enumerate(languages)
                        if other is not language
                    ],
                }
                html = render_to_string("reports/site/page.html", context)
                yield f"{folder}{chapter.key}.html", html


def _towards(here: int, there: int, other: Language, key: str) -> str:
    """The address of a chapter in another language."""
    up = "" if here == 0 else "../"
    down = "" if there == 0 else f"{other.key}/"
    return f"{up}{down}{key}.html"
