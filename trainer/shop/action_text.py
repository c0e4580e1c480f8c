"""Actions written as text: the published wire form ``search[…]`` and ``click[…]`` (environment.md
§2.3).

Used by the service and by replays of published traces. In process, actions are structured from the
start.
"""

from __future__ import annotations

import re

from trainer.shop.feedback import Reason
from trainer.shop.types import Action

_LABELLED = re.compile(r"^[ \t]*action[ \t]*:(.*)$", re.IGNORECASE | re.MULTILINE)
_CHAINED = re.compile(r"\]\s*(?:[,;，；]\s*)?(?:search|click)\[", re.IGNORECASE)
_ACTION = re.compile(r"([^\[\]\r\n]+)\[([^\r\n]*)\]")


def read_action(text: object) -> Action | Reason:
    """The action a text stands for, or the reason why it stands for none. Never raises.

    A known name without an argument is an action with an empty one.
    """
    if not isinstance(text, str):
        return "invalid_format"
    written = text.replace("\\n", "\n")
    labelled: list[str] = _LABELLED.findall(written)
    action = (labelled[0] if len(labelled) == 1 else written).strip()
    if not action:
        return "invalid_format"
    if len(labelled) > 1 or _CHAINED.search(action):
        return "multiple_actions_not_allowed"
    if "[" not in action and "]" not in action:
        return _named(action, "")
    found = _ACTION.fullmatch(action)
    return _named(found[1], found[2]) if found else "invalid_format"


def _named(name: str, argument: str) -> Action | Reason:
    known = name.strip().casefold()
    if known == "search":
        return Action("search", argument)
    if known == "click":
        return Action("click", argument)
    return "invalid_format"
