"""What is shown of any trace: turns in windows, reward parts, treatment, bought beside wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from intraskill_web.core.labels import PURPOSES, TERMINATIONS, TREATMENTS, word
from intraskill_web.episodes import wanted
from intraskill_web.episodes.endings import ending
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.transcript import ShownChunk, Transcript, transcript
from intraskill_web.skills.models import Curriculum, SkillVersionChunk
from trainer.shop.types import REWARD_PARTS

WINDOW = 50  # turns shown at once


@dataclass(frozen=True, slots=True)
class Part:
    """One reward part between 0 and 1."""

    name: str
    value: float | None


@dataclass(frozen=True, slots=True)
class Window:
    """The turns shown at once, and the other windows of a long episode."""

    first: int
    last: int
    total: int
    starts: list[tuple[int, int]]  # first and last turn of every window; none for a short episode

    @classmethod
    def around(cls, turn: int, total: int) -> Window:
        """The window that holds a turn."""
        turn = min(max(1, turn), max(1, total))
        first = (turn - 1) // WINDOW * WINDOW + 1
        starts = [(n, min(n + WINDOW - 1, total)) for n in range(1, total + 1, WINDOW)]
        last = min(first + WINDOW - 1, total)
        return cls(first, last, total, starts if len(starts) > 1 else [])

    @property
    def previous(self) -> int | None:
        return self.first - WINDOW if self.first > 1 else None

    @property
    def following(self) -> int | None:
        return self.last + 1 if self.last < self.total else None


def reading(
    episode: Episode, trace: Mapping[str, Any], *, turn: int = 1, goal: bool = False
) -> dict[str, Any]:
    """The context of a trace's turns and of the boxes beside them; ``episode`` needs no row.

    ``goal``: the reader may see the private goal. Two queries at most.
    """
    steps = trace.get("steps")
    window = Window.around(turn, len(steps) if isinstance(steps, list) else 0)
    read = transcript(trace, window.first, WINDOW)
    return {
        "episode": episode,
        "ending": ending(episode),
        "read": read,
        "window": window,
        "turns": read.turns,
        "outline": read.outline[window.first - 1 : window.last],
        "parts": [Part(name, getattr(episode, name)) for name in REWARD_PARTS],
        "wanted": wanted.lines(trace) if goal else [],
        "may_see_goal": goal,
        "treatment": treatment(episode, read),
        "treatment_word": word(TREATMENTS, episode.treatment_mode),
        "purpose_word": word(PURPOSES, episode.purpose),
        "termination_word": word(TERMINATIONS, episode.termination),
    }


@dataclass(frozen=True, slots=True)
class Shown:
    """A chunk of the prompt with its target inclusion, where the curriculum says it."""

    chunk: ShownChunk
    rho: float | None


@dataclass(frozen=True, slots=True)
class Treatment:
    """The chunks of the prompt, and those of the bank that were left out."""

    shown: list[Shown]
    absent: list[tuple[str, str]]  # id and title
    bank: int


def treatment(episode: Episode, read: Transcript) -> Treatment:
    """What the prompt showed, against the round's curriculum. Two queries at most."""
    curriculum = Curriculum.objects.filter(round=episode.round_id).first()
    known = {
        str(c.get("skill_id")): c.get("rho") for c in (curriculum.chunks if curriculum else [])
    }
    shown = [Shown(chunk, known.get(chunk.skill_id)) for chunk in read.chunks]
    here = {chunk.skill_id for chunk in read.chunks}
    missing = [skill_id for skill_id in known if skill_id not in here]
    titles = chunk_titles(curriculum.version_id) if curriculum and missing else {}
    return Treatment(shown, [(i, titles.get(i, i)) for i in missing], len(known))


def chunk_titles(version_id: int) -> dict[str, str]:
    """Title by id of every chunk of a bank, in its order. One query."""
    entries = SkillVersionChunk.objects.filter(version=version_id)
    rows = entries.order_by("order").values_list("revision__skill_id", "revision__title")
    return {skill_id: title or skill_id for skill_id, title in rows}
