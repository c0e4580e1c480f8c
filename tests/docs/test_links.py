"""What a document links to is there."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
DOCUMENTS = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "benchmarks").glob("*.md"),
]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path: Path) -> None:
    gone = [
        target for target in LINK.findall(CODE.sub("", path.read_text())) if not there(path, target)
    ]
    assert not gone


def there(path: Path, target: str) -> bool:
    """Whether a file of ours is there, with the heading that is named; the web is not asked."""
    file, _, heading = unquote(target).partition("#")
    if file.startswith(("http://", "https://", "mailto:")):
        return True
    found = (path.parent / file).resolve() if file else path
    return found.exists() and (not heading or heading in headings(found))


def headings(path: Path) -> set[str]:
    """The anchors of a document's headings as GitHub makes them."""
    lines = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).strip().replace(" ", "-") for line in lines}
