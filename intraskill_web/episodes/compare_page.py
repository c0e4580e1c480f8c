"""Two episodes on one page: what the compare view shows beside the episode's own facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from intraskill_web.core import formats
from intraskill_web.core.labels import PURPOSES, TREATMENTS, word
from intraskill_web.episodes import wanted
from intraskill_web.episodes.compare import Comparison, Pair, compare
from intraskill_web.episodes.endings import Ending, ending
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.replay_words import original_word
from intraskill_web.episodes.transcript import ShownChunk, transcript
from intraskill_web.episodes.wanted import Line
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
class BothShown:
    """A chunk that one of the two saw, or both."""

    chunk: ShownChunk
    a: bool
    b: bool


@dataclass(frozen=True, slots=True)
class BothBought:
    """An aspect of what each bought, beside what was wanted."""

    name: str
    a: Line | None
    b: Line | None

    @property
    def sides(self) -> tuple[Line | None, Line | None]:
        return self.a, self.b

    @property
    def wanted(self) -> str:
        line = self.a or self.b
        return line.wanted if line else ""


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
    names: tuple[str, str] | None = None,
) -> dict[str, Any]:
    """The context of the compare view; ``row`` is where its window begins, if not by itself.

    ``names`` are those of the two where their columns do not tell them apart.
    """
    ours_name, theirs_name = names or (side_name(episode, other), side_name(other, episode))
    a = Side("A", ours_name, episode, ending(episode))
    b = Side("B", theirs_name, other, ending(other))
    ours, theirs = transcript(trace), transcript(other_trace)
    found = compare(ours.turns, theirs.turns)
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
        "both_shown": both_shown(ours.chunks, theirs.chunks),
        "both_bought": both_bought(wanted.lines(trace), wanted.lines(other_trace)),
        "earlier_row": max(0, row - ROWS) if row else None,
        "later_row": row + ROWS if row + ROWS < total else None,
    }


def data(ours: Mapping[str, Any], other: Episode, theirs: Mapping[str, Any]) -> dict[str, Any]:
    """The comparison for JSON; ``divergence`` is the first turn that differs."""
    found = compare(transcript(ours).turns, transcript(theirs).turns)
    at = None if found.divergence is None else found.pairs[found.divergence].index
    return {"with": other.pk, "divergence": at, "fork": sentence(found)}


def same_task(episode: Episode, other: Episode) -> bool:
    """Whether both were asked the same; shops of two experiments may number theirs otherwise."""
    if (episode.task_id, episode.split) != (other.task_id, other.split):
        return False
    return episode.experiment_id == other.experiment_id or episode.instruction == other.instruction


def both_shown(ours: list[ShownChunk], theirs: list[ShownChunk]) -> list[BothShown]:
    """The chunks of both prompts, those of A first; nothing where they are the same."""
    a, b = {c.skill_id for c in ours}, {c.skill_id for c in theirs}
    if a == b:
        return []
    chunks = {c.skill_id: c for c in (*theirs, *ours)}
    order = dict.fromkeys(c.skill_id for c in (*ours, *theirs))
    return [BothShown(chunks[i], i in a, i in b) for i in order]


def both_bought(ours: list[Line], theirs: list[Line]) -> list[BothBought]:
    """Line by line; a purchase that was not made has none."""
    a, b = {line.name: line for line in ours}, {line.name: line for line in theirs}
    return [BothBought(name, a.get(name), b.get(name)) for name in dict.fromkeys((*a, *b))]


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
    return original_word(episode)
