"""The exact tokens of an episode with their loss mask and log-probabilities, in runs. Pure.

Words are known for the embedded world only; for other policies a token is its number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from intraskill_web.episodes.shop_pages import mapping
from trainer.canonical import fingerprint
from trainer.rollout.policy import TokenRecord
from trainer.rollout.traces import token_record

WINDOW = 4_000  # tokens of one page
SHADES = ((-0.1, 0), (-0.7, 1), (-1.6, 2), (-3.0, 3))  # log-probability down to which a shade holds


@dataclass(frozen=True, slots=True)
class Token:
    """A sampled token; ``shade`` grows as its probability falls, from 0 to 4."""

    text: str
    log_prob: float
    shade: int


@dataclass(frozen=True, slots=True)
class Run:
    """Tokens in a row on one side of the mask: read ones as a text, sampled ones one by one."""

    start: int
    sampled: list[Token]
    read: str
    length: int


@dataclass(frozen=True, slots=True)
class TokenView:
    """A window of the tokens; ``words`` says whether they are words or numbers."""

    runs: list[Run]
    total: int
    sampled: int
    words: bool
    start: int
    following: int | None


def token_view(trace: Mapping[str, Any], start: int = 0) -> TokenView | None:
    """The window from ``start``; None where the trace holds no exact tokens or damaged ones."""
    try:
        record = token_record(trace)
    except (KeyError, TypeError, ValueError, IndexError, StopIteration, RuntimeError):
        return None
    if record is None:
        return None
    model = mapping(mapping(trace.get("provenance")).get("model"))
    words = _vocabulary(str(model.get("vocabulary_sha256") or ""))
    total = len(record.token_ids)
    end = min(total, start + WINDOW)
    return TokenView(
        runs=_runs(record, words, start, end),
        total=total,
        sampled=sum(record.loss_mask),
        words=bool(words),
        start=start,
        following=end if end < total else None,
    )


def _runs(record: TokenRecord, words: Sequence[str], start: int, end: int) -> list[Run]:
    runs: list[Run] = []
    at = start
    while at < end:
        stop = at
        while stop < end and record.loss_mask[stop] == record.loss_mask[at]:
            stop += 1
        texts = [_word(words, token) for token in record.token_ids[at:stop]]
        sampled: list[Token] = []
        if record.loss_mask[at]:
            pairs = zip(texts, record.log_probs[at:stop], strict=True)
            sampled = [Token(text, value, _shade(value)) for text, value in pairs]
        runs.append(Run(at, sampled, "" if sampled else " ".join(texts), stop - at))
        at = stop
    return runs


def _word(words: Sequence[str], token: object) -> str:
    return words[token] if isinstance(token, int) and 0 <= token < len(words) else str(token)


def _shade(log_prob: float) -> int:
    return next((shade for least, shade in SHADES if log_prob >= least), 4)


@lru_cache(maxsize=4)
def _vocabulary(sha256: str) -> tuple[str, ...]:
    """The words of the embedded world, if they are those of the policy."""
    from trainer.shop.mini.words import vocabulary

    words = tuple(vocabulary())
    return words if fingerprint(list(words)) == sha256 else ()
