"""Query normaliser and tokens (environment.md §3.2)."""

from __future__ import annotations

import re
import unicodedata

QUERY_NORMALISER = "nfkc-casefold-basic-punctuation-v1"
TOKENISER = "han-bigram-latin-number-v1"

_YUAN = re.compile(r"(?<=\d)\s?(?:rmb|cny|yuan)\b")
_SPACE = re.compile(r"\s+")
_PUNCTUATION = re.compile(r"[，,。；;：:！!？?、|]+")
_RUNS = re.compile(r"([\u3400-\u4dbf\u4e00-\u9fff]+)|([a-z0-9]+(?:[._+\-/][a-z0-9]+)*)")
_MODEL = re.compile(r"[a-z0-9]+(?:[._+\-/][a-z0-9]+)*")
_INNER = re.compile(r"[._+\-/]+")


def normalise(text: str) -> str:
    """The one spelling of a text for searching."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = text.replace("人民币", "元").replace("块钱", "元")
    text = _SPACE.sub(" ", _YUAN.sub("元", text))
    return _SPACE.sub(" ", _PUNCTUATION.sub(" ", text)).strip()


def han_and_latin(text: str) -> tuple[str, ...]:
    """Han bigrams (a lone character as it is), then latin and digit runs; distinct, in order."""
    han: dict[str, None] = {}
    latin: dict[str, None] = {}
    for run, word in _RUNS.findall(text):
        if word:
            latin[word] = None
        elif len(run) == 1:
            han[run] = None
        else:
            for start in range(len(run) - 1):
                han[run[start : start + 2]] = None
    return (*han, *latin)


def tokenise(text: str) -> tuple[str, ...]:
    """The distinct search tokens of a text."""
    return han_and_latin(normalise(text))


def models(title: str) -> tuple[str, ...]:
    """Model designations of a title: runs that hold a letter and a digit, such as ``xk-200``."""
    runs = dict.fromkeys(_MODEL.findall(normalise(title)))
    return tuple(
        run for run in runs if any(c.isdigit() for c in run) and any("a" <= c <= "z" for c in run)
    )


def subtokens(token: str) -> tuple[str, ...]:
    """A token as the full-text engine stores it: latin runs split again at inner signs."""
    if token.isalnum():
        return (token,)
    return tuple(part for part in _INNER.split(token) if part)
