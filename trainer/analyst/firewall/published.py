"""The published firewall, to the letter (gate-analysis.md §11.4).

All strings of the checked object are joined by newlines. Without facts of a trace only the first
three rules apply, which is how the published compiler's output is checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainer.analyst.firewall.gold import GoldFacts

_ASIN = re.compile(r"\bASIN\b", re.IGNORECASE)
_LONG_IDENTIFIER = re.compile(r"\b\d{10,}\b")
_TASK_ID = re.compile(r"task[-_ ]?\d+", re.IGNORECASE)
TITLE_LENGTH, BRAND_LENGTH, OPTION_LENGTH = 6, 3, 6


def strings_of(value: object) -> Iterator[str]:
    """Every string in a JSON value, in order; keys are not part of the text."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings_of(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings_of(item)


def published_findings(value: object, facts: GoldFacts | None) -> list[str]:
    """Names of the rules that the object breaks, in the order of the specification."""
    text = "\n".join(strings_of(value))
    found = []
    if _ASIN.search(text):
        found.append("mentions_asin")
    if _LONG_IDENTIFIER.search(text):
        found.append("contains_long_identifier")
    if _TASK_ID.search(text):
        found.append("contains_task_id")
    if facts is None:
        return found
    if any(len(title) >= TITLE_LENGTH and title in text for title in facts.titles):
        found.append("copies_instance_product_title")
    if any(len(brand) >= BRAND_LENGTH and brand in text for brand in facts.seen_brands):
        found.append("copies_instance_brand")
    if any(len(option) >= OPTION_LENGTH and option in text for option in facts.gold_options):
        found.append("copies_gold_option")
    return found
