"""The pages of an export: links, anchors, ids, languages, alternative texts, no other origin."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from jobs.reports.pages import LANGUAGES

ADDRESSES = {"href", "src", "action", "poster", "data"}
CJK = re.compile("[\u4e00-\u9fff]")
# What a page opened from disk may not do, in the scripts and styles that are ours.
NETWORK = re.compile(
    r"\bfetch\(|XMLHttpRequest|WebSocket|EventSource|\bimport\(|https?:(?!//www\.w3\.org)//|@import"
)


@dataclass(slots=True)
class Page(HTMLParser):
    """What the checks need of one page."""

    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    language: str = ""
    title: str = ""
    sections: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    _in: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        HTMLParser.__init__(self, convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "html":
            self.language = given.get("lang", "")
        if tag == "section":
            self.sections.append(given.get("id", ""))
        if tag in ("title", "script", "style"):
            self._in.append(tag)
        self.links += [given[name] for name in ADDRESSES & given.keys()]
        if tag == "img" and not given.get("alt"):
            self.faults.append(f"an image has no alternative text: {given.get('src', '')}")
        if given.get("role") == "img" and not given.get("aria-label"):
            self.faults.append(f"a drawing has no label: <{tag}>")
        if any(name.startswith("on") for name in given) or given.get("href", "").startswith(
            "javascript:"
        ):
            self.faults.append(f"a script stands inside <{tag}>")

    def handle_endtag(self, tag: str) -> None:
        if self._in and self._in[-1] == tag:
            self._in.pop()

    def handle_data(self, data: str) -> None:
        if self._in:
            if self._in[-1] == "title":
                self.title += data
            elif data.strip():
                self.faults.append(f"text inside <{self._in[-1]}>")
        else:
            self.text.append(data)


def page_problems(folder: Path, languages: Sequence[str]) -> list[dict[str, str]]:
    """Every fault of every page, by file."""
    pages = {p.relative_to(folder).as_posix(): parsed(p) for p in sorted(folder.rglob("*.html"))}
    problems = [
        {"file": name, "problem": fault}
        for name, page in pages.items()
        for fault in (*page.faults, *_ids(page), *_links(folder, name, page, pages))
    ]
    problems += _languages(pages, languages)
    problems += _origins(folder)
    return problems


def parsed(path: Path) -> Page:
    """A page read."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    page.close()
    return page


def _ids(page: Page) -> Iterator[str]:
    for name, count in Counter(page.ids).items():
        if count > 1 and name != "hatch":  # every bar chart holds the pattern of that name
            yield f"the id {name!r} stands {count} times"
    if not page.title.strip():
        yield "has no title"


def _links(folder: Path, name: str, page: Page, pages: dict[str, Page]) -> Iterator[str]:
    for link in page.links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            yield f"leads to another origin: {link}"
            continue
        target = name
        if parts.path:
            place = (folder / name).parent / unquote(parts.path)
            resolved = place.resolve()
            if not resolved.is_relative_to(folder.resolve()):
                yield f"leads outside the export: {link}"
                continue
            if not resolved.is_file():
                yield f"leads to nothing: {link}"
                continue
            target = resolved.relative_to(folder.resolve()).as_posix()
        if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
            yield f"leads to an anchor that is not there: {link}"


def _languages(pages: dict[str, Page], languages: Sequence[str]) -> list[dict[str, str]]:
    """Every chapter exists in every language, with the same sections, in that language."""
    problems = []
    base = sorted(name for name in pages if "/" not in name)
    for place, key in enumerate(languages):
        folder = "" if place == 0 else f"{key}/"
        for name in base:
            page = pages.get(f"{folder}{name}")
            if page is None:
                problems.append({"file": f"{folder}{name}", "problem": f"is missing in {key}"})
                continue
            if page.language != LANGUAGES[key].html:
                problems.append(
                    {
                        "file": f"{folder}{name}",
                        "problem": f"states language {page.language!r}, not {key}",
                    }
                )
            if page.sections != pages[name].sections:
                problems.append({"file": f"{folder}{name}",
                                 "problem": f"has other sections than {name}"})  # fmt: skip
            if key == "zh" and not CJK.search(page.title + "".join(page.text)):
                problems.append({"file": f"{folder}{name}", "problem": "holds no Chinese"})
    if not any(name.endswith("index.html") for name in pages):
        problems.append({"file": "index.html", "problem": "is missing"})
    return problems


def _origins(folder: Path) -> list[dict[str, str]]:
    problems = []
    for path in sorted((folder / "assets").glob("*")):
        if path.suffix in (".js", ".css") and path.name != "plotly.min.js":
            hit = NETWORK.search(path.read_text(encoding="utf-8"))
            if hit:
                problems.append(
                    {"file": f"assets/{path.name}", "problem": f"asks a network: {hit[0]}"}
                )
    return problems
