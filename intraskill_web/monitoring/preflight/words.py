"""What the trainer's checks found, in the reader's language.

The trainer knows no languages: it says what it found in English, and that is what is kept and what
JSON shows. Here its sentences are recognised; one that is unknown is shown as it is.
"""

from __future__ import annotations

import re

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from intraskill_web.monitoring.preflight.faults import FAULTS, REMEDIES

# the trainer's sentence (trainer/preflight/checks.py) → ours; groups carry over by name
SENTENCES: tuple[tuple[str, str | Promise], ...] = (
    (
        r"profile (?P<profile>\S+), catalogue (?P<hash>\w+)",
        _("profile %(profile)s, catalogue %(hash)s"),
    ),
    (r"(?P<n>\d+) active chunks, hash (?P<hash>\w+)", _("%(n)s active chunks, hash %(hash)s")),
    (r"state (?P<hash>\w+), (?P<n>\d+) chunks", _("state %(hash)s, %(n)s chunks")),
    (r"built from this bank", _("built from this bank")),
    (
        r"(?P<n>\d+) chunks equal those of the bank, in order",
        _("%(n)s chunks equal those of the bank, in order"),
    ),
    (r"every contribution is positive or held", _("every contribution is positive or held")),
    (
        r"(?P<n>\d+) chunks carry an effect to start from",
        _("%(n)s chunks carry an effect to start from"),
    ),
    (r"(?P<n>\d+) tasks, ids (?P<hash>\w+)", _("%(n)s tasks, ids %(hash)s")),
    (r"(?P<n>\d+) tasks in (?P<split>\w+)", _("%(n)s tasks in %(split)s")),
    (
        r"(?P<train>\d+) train, (?P<val>\d+) val, (?P<test>\d+) test",
        _("%(train)s for training, %(val)s for validation, %(test)s for test"),
    ),
    (
        r"bound to this catalogue, without an id",
        _("bound to this catalogue, without an id"),
    ),
    (r"bound to this catalogue, (?P<id>\S+)", _("bound to this catalogue, %(id)s")),
    (r"(?P<id>\S+) served as (?P<model>.+)", _("%(id)s served as %(model)s")),
    (r"(?P<model>\S+) at (?P<url>\S+)", _("%(model)s at %(url)s")),
    (r"rule_based", _("by rules")),
    (
        r"(?P<n>\d+) active chunks, (?P<candidates>\d+) candidates",
        _("%(n)s active chunks, %(candidates)s candidates"),
    ),
    (
        r"(?P<n>\d+) chunks, of which (?P<most>\d+) may become active",
        _("%(n)s chunks, of which %(most)s may become active"),
    ),
    (r"none", _("none")),
    (r"none named", _("none named")),
    (r"(?P<n>\d+) GiB free", _("%(n)s GiB free")),
)
KNOWN = [(re.compile(pattern), words) for pattern, words in SENTENCES]
# An InputError's text: file and field, what is wrong, and what was found instead.
PARTS = r"(?:(?P<where_>.+?): )?{}(?: \(found (?P<found_>.*)\))?"
WRONG = [(re.compile(PARTS.format(pattern), re.DOTALL), words) for pattern, words in FAULTS]
TO_DO = [(re.compile(pattern), words) for pattern, words in REMEDIES]


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


def _filled(words: str | Promise, match: re.Match[str]) -> str:
    values = match.groupdict()
    return str(words) % values if any(not name.endswith("_") for name in values) else str(words)
