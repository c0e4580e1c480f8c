"""What a machine finds on a page: axe-core's serious findings, texts left in English, no room."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings

from intraskill_web.core.po import entries

RULES = ["wcag2a", "wcag2aa", "wcag21aa"]
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


def faults_of(visitor: Any, path: str, axe: str) -> list[str]:
    """All faults of a page; ``axe`` is axe-core's text."""
    page = visitor.open(path)
    found = [*visitor.faults]
    if visitor.overflow() > 0:
        found.append(f"{visitor.overflow()} px wider than the window")
    if page.evaluate("document.documentElement.lang").startswith("zh"):
        watched = english()
        found += [f"untranslated: {text}" for text in page.evaluate(TEXTS) if text in watched]
    found += serious(page, axe)
    visitor.faults.clear()  # axe-core tries styles that the policy refuses
    return found


def serious(page: Any, axe: str) -> list[str]:
    """Serious and critical findings, each with its first element."""
    page.evaluate(axe)
    result = page.evaluate("rules => axe.run({resultTypes: ['violations'], runOnly: rules})", RULES)
    return [
        f"{v['impact']} {v['id']}: {v['nodes'][0]['html'][:140]} ({len(v['nodes'])})"
        for v in result["violations"]
        if v["impact"] in ("serious", "critical")
    ]


@cache
def english() -> frozenset[str]:
    """Texts of the catalogue whose Chinese differs, without placeholders and bare identifiers."""
    path = Path(settings.BASE_DIR) / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"
    found = set()
    for entry in entries(path.read_text(encoding="utf-8")):
        text = entry["msgid"].replace("%%", "%")
        said = " " in text or text[:1].isupper()
        if said and "%(" not in text and entry["msgid"] != entry.get("msgstr"):
            found.add(text)
    return frozenset(found)
