"""Reading pages in tests: what links where, and what a strict policy would refuse."""

from __future__ import annotations

from html.parser import HTMLParser


class Page(HTMLParser):
    """The elements of a page: (tag, attributes), links with their text, and all visible text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.links: list[tuple[str, str]] = []
        self.text = ""
        self.scripts: list[str] = []
        self._open: list[str] = []
        self._href: str | None = None
        self._label = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)
        if tag == "a":
            self._href, self._label = dict(attrs).get("href"), ""

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._href is not None:
            self.links.append((self._href, self._label.strip()))
            self._href = None

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "script":
            self.scripts.append(data.strip())
        self.text += data
        self._label += data

    def policy_faults(self) -> list[str]:
        """Inline scripts, handlers and style attributes: all that the policy forbids."""
        faults = [f"inline script: {text[:60]}" for text in self.scripts if text]
        for tag, attributes in self.elements:
            for name in attributes:
                if name == "style" or name.startswith("on"):
                    faults.append(f"<{tag} {name}>")
            if tag == "style":
                faults.append("<style>")
        return faults
