"""What axe-core says of a page."""

from __future__ import annotations

from typing import Any

RULES = ["wcag2a", "wcag2aa", "wcag21aa"]


def serious(page: Any, axe: str) -> list[str]:
    """Serious and critical findings, each with its first element; ``axe`` is axe-core's text."""
    page.evaluate(axe)
    result = page.evaluate("rules => axe.run({resultTypes: ['violations'], runOnly: rules})", RULES)
    return [
        f"{v['impact']} {v['id']}: {v['nodes'][0]['html'][:140]} ({len(v['nodes'])})"
        for v in result["violations"]
        if v["impact"] in ("serious", "critical")
    ]
