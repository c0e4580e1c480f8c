"""Two episodes on one page: what the compare view shows beside the episode's own facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from intraskill_web.core import formats
from intraskill_web.core.labels import PURPOSES, TREATMENTS, word
from intraskill_web.episodes.compare import Comparison, Pair, compare
from intraskill_web.episodes.endings import Ending, ending
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.transcript import transcript
from trainer.shop.types import REWARD_PARTS

ROWS = 50  # pairs shown at once
BEFORE = 10  # of them in front of the divergence of a long episode


@dataclass(frozen=True, slots=True)
class BothParts:
    """A reward part of both."""

    name: str
    a: float | None
    b: float | None

    @property
    def differs(self) -> bool:
        return self.a != self.b


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two: letter, name and how it ended."""

    letter: str
    name: str
    episode: Episode
    ending: Ending


def build(
    episode: Episode,
    trace: Mapping[str, Any],
    other: Episode,
    other_trace: Mapping[str, Any],
    *,
    row: int | None,
) -> dict[str, Any]:
    """The context of the compare view; ``row`` is where its window begins, if not by itself."""
    a = Side("A", side_name(episode, other), episode, ending(episode))
    b = Side("B", side_name(other, episode), other, ending(other))
    found = compare(transcript(trace).turns, transcript(other_trace).turns)
    total = len(found.pairs)
    if row is None:
        row = max(0, (found.divergence or 0) - BEFORE) if total > ROWS else 0
    row = min(max(0, row), max(0, total - 1))
    shown = found.pairs[row : row + ROWS]
    at = None if found.divergence is None else found.divergence - row
    return {
        "comparing": True,
        "sides": [a, b],
        "a": a,
        "b": b,
        "other": other,
        "pairs": list(enumerate(shown)),
        "divergence": at,
        "fork": sentence(found),
        "both_parts": [
            BothParts(name, getattr(episode, name), getattr(other, name)) for name in REWARD_PARTS
        ],
        "earlier_row": max(0, row - ROWS) if row else None,
        "later_row": row + ROWS if row + ROWS < total else None,
    }


def sentence(found: Comparison) -> str:
    """What the first divergence is, in a sentence."""
    if found.divergence is None:
        return _("Both episodes are the same, turn by turn.")
    pair: Pair = found.pairs[found.divergence]
    n = pair.index
    if pair.kind in ("only_a", "only_b"):
        longer = "A" if pair.kind == "only_a" else "B"
        return _("First divergence, turn %(n)s: only %(who)s goes on.") % {"n": n, "who": longer}
    if pair.kind == "page":
        return _("First divergence, turn %(n)s: the same action, another answer.") % {"n": n}
    return _("First divergence, turn %(n)s: the same page, another choice.") % {"n": n}


def side_name(episode: Episode, other: Episode) -> str:
    """What tells one from the other: sibling, arm, checkpoint or treatment."""
    if episode.purpose == "retry":
        return word(PURPOSES, "retry")
    if episode.group_index is not None and episode.group_index == other.group_index:
        return _("sibling %(n)s") % {"n": formats.count(episode.sample_id)}
    if episode.arm != other.arm or not episode.checkpoint:
        return word(TREATMENTS, episode.arm or episode.treatment_mode)
    return _("checkpoint %(id)s") % {"id": formats.hash8(episode.checkpoint)}
