"""The refusal of a red preflight: one English sentence, kept as it is, worded where it is shown.

A hold outlives whoever found its reason, and its readers have languages of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from django.utils.translation import gettext as _

from intraskill_web.monitoring.preflight.items import NAMES, Item
from intraskill_web.monitoring.preflight.words import is_remedy, worded, worded_remedy
from trainer.errors import InputError

SENTENCE = re.compile(
    r"(?:round: )?the preflight is red: (?P<name>[\w.]+): (?P<rest>.+)", re.DOTALL
)
TAIL = re.compile(r"(?: \(and (?P<more>\d+) more\))?(?: \(found \d+\))?\Z")


def refusal(red: Sequence[Item], number: int) -> InputError:
    """The error that names the first of what is red before round ``number``."""
    first = red[0]
    more = f" (and {len(red) - 1} more)" if len(red) > 1 else ""
    detail = first.detail.removeprefix(f"{first.name}: ").removesuffix(f". {first.remedy}")
    return InputError(
        f"the preflight is red: {first.name}: {detail}{more}",
        field="round",
        value=number,
        remedy=first.remedy or "See the checklist of the experiment",
    )


def worded_refusal(text: str) -> str:
    """What ``refusal`` says, in the reader's language; any other text as it is."""
    match = SENTENCE.fullmatch(text)
    if match is None:
        return text
    said, remedy = next(_cuts(match["rest"]), (match["rest"], ""))
    tail = TAIL.search(said)
    assert tail is not None, "it matches the end of every text"
    found = {
        "name": NAMES.get(match["name"], match["name"]),
        "what": worded(said[: tail.start()]),
    }
    words = _("the preflight is red: %(name)s: %(what)s") % found
    if tail["more"]:
        words += _(" (and %(n)s more)") % {"n": tail["more"]}
    return words + (_(". %(remedy)s") % {"remedy": worded_remedy(remedy)} if remedy else "")


def _cuts(text: str) -> Iterator[tuple[str, str]]:
    """Where a known remedy may end the text: what stands before it, and the remedy."""
    for stop in re.finditer(r"\. ", text):
        if is_remedy(text[stop.end() :]):
            yield text[: stop.start()], text[stop.end() :]
