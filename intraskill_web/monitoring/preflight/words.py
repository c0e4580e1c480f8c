"""What the trainer's checks found, in the reader's language.

The trainer knows no languages: it says what it found in English, and that is what is kept and what
JSON shows. Here its sentences are recognised; one that is unknown is shown as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from django.utils.translation import gettext, gettext_noop

from intraskill_web.monitoring.preflight import check_words, slime_words

# what the checks say is shown otherwise to everybody
OTHERWISE = {
    "%(train)s train, %(val)s val, %(test)s test": gettext_noop(
        "%(train)s for training, %(val)s for validation, %(test)s for test"
    ),
    "rule_based": gettext_noop("by rules"),
}
# what machine.py finds before a round that begins by itself, which has no reader
MACHINE = (
    gettext_noop("%(free)s free, %(wanted)s wanted; the round before took %(took)s"),
    gettext_noop("%(free)s free, %(wanted)s wanted"),
)
MACHINE_REMEDIES = (
    gettext_noop("Free at least %(size)s."),
    gettext_noop("See the checklist of the experiment"),
)
# places of more than one word
SEVERAL = {"free", "ids", "names", "path", "setting", "size", "took", "versions", "wanted", "why"}
WORD = r"\S+"
PLACE = re.compile(r"%\((\w+)\)s")
Known = list[tuple[re.Pattern[str], str]]  # a sentence, and what is translated


def _known(sentences: Iterable[str], around: str = "{}") -> Known:
    return [
        (re.compile(around.format(_pattern(text)), re.DOTALL), OTHERWISE.get(text, text))
        for text in sentences
    ]


def _pattern(text: str) -> str:
    """What ``text`` looks like once its places are filled; groups have the names of the places."""
    parts = PLACE.split(text)
    parts[::2] = map(re.escape, parts[::2])
    parts[1::2] = (f"(?P<{name}>{'.*' if name in SEVERAL else WORD})" for name in parts[1::2])
    return "".join(parts)


# An InputError's text: file and field, what is wrong, and what was found instead.
AROUND = r"(?:(?P<where_>.+?): )?{}(?: \(found (?P<found_>.*)\))?"
FOUND = (*OTHERWISE, *MACHINE, *check_words.FINDINGS, *slime_words.FINDINGS)
FAULTS = (*check_words.FAULTS, *slime_words.FAULTS)
KNOWN = _known(FOUND)
WRONG = _known((*FAULTS, *slime_words.FINDINGS), AROUND)
TO_DO = _known((*MACHINE_REMEDIES, *check_words.REMEDIES, *slime_words.REMEDIES))


def worded(detail: str, remedy: str = "") -> str:
    """``detail`` in the reader's language, without the remedy that stands below it."""
    if remedy:
        detail = detail.removesuffix(f". {remedy}")
    for pattern, words in KNOWN:
        if match := pattern.fullmatch(detail):
            return _filled(words, match)
    for pattern, words in WRONG:
        if match := pattern.fullmatch(detail):
            where, found = match["where_"], match["found_"]
            text = f"{where}: " if where else ""
            text += _filled(words, match)
            return text + (gettext(" (found %(value)s)") % {"value": found} if found else "")
    return detail


def worded_remedy(remedy: str) -> str:
    """What to do, in the reader's language."""
    for pattern, words in TO_DO:
        if match := pattern.fullmatch(remedy):
            return _filled(words, match)
    return remedy


def is_remedy(text: str) -> bool:
    """Whether the checks say so of what is to be done."""
    return any(pattern.fullmatch(text) for pattern, _words in TO_DO)


def _filled(words: str, match: re.Match[str]) -> str:
    values = match.groupdict()
    text = gettext(words)
    return text % values if any(not name.endswith("_") for name in values) else text
