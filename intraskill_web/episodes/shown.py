"""Values of a trace as text to look at, whatever they hold. Pure.

Control characters become the signs for them: an escape sequence or a NUL is seen and does nothing.
"""

from __future__ import annotations

import json
import re

LONGEST = 20_000  # characters of one text that a page shows; the rest has an address of its own
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
SIGNS = {code: 0x2400 + code for code in range(0x20) if code not in (9, 10, 13)} | {0x7F: 0x2421}


def shown(value: object, most: int | None = LONGEST) -> str:
    """``value`` as text of at most ``most`` characters; nothing for None, JSON for no text."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else _json(value)
    text = text if most is None else text[:most]
    return text.translate(SIGNS) if CONTROL.search(text) else text


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:  # nested beyond what anybody reads
        return "…"
