"""Builds the episode page: what kind of ending, which treatment, how the siblings did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from intraskill_web.core import formats
from intraskill_web.core.labels import PURPOSES, TERMINATIONS, TREATMENTS, TRIAGE, word
from intraskill_web.episodes import wanted
from intraskill_web.episodes.endings import ending
from intraskill_web.episodes.links import episodes_url
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.shop_pages import mapping
from intraskill_web.episodes.transcript import ShownChunk, Transcript, transcript
from intraskill_web.skills.models import Curriculum
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


def build(
    episode: Episode, trace: Mapping[str, Any], *, turn: int = 1, goal: bool = False
) -> dict[str, Any]:
    """The page's context. ``goal``: the reader may see the private goal. Three queries."""
    steps = trace.get("steps")
    window = Window.around(turn, len(steps) if isinstance(steps, list) else 0)
    read: Transcript = transcript(trace, window.first, WINDOW)
    siblings = _siblings(episode)
    rewards = [s.reward for s in siblings if s.reward is not None and s.purpose == episode.purpose]
    name = episode.experiment.name
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
        "siblings": [(s, ending(s)) for s in siblings],
        "others": [(s, ending(s)) for s in other_checkpoints(episode)],
        "group_mean": fmean(rewards) if rewards else None,
        "group_sd": stdev(rewards) if len(rewards) > 1 else None,
        "group_href": episodes_url(experiment=name, group=episode.group_index)
        if episode.group_index is not None
        else "",
        "task_href": episodes_url(experiment=name, task=episode.task_id, split=episode.split),
        "treatment": treatment(episode, read),
        "treatment_word": word(TREATMENTS, episode.treatment_mode),
        "purpose_word": word(PURPOSES, episode.purpose),
        "termination_word": word(TERMINATIONS, episode.termination),
        "triage_word": word(TRIAGE, episode.triage),
        "retry": next((s for s in siblings if s.purpose == "retry"), None),
        "exact_tokens": "token_ids" in mapping(trace.get("tokens")),
        "crumbs": _crumbs(episode),
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
    absent: list[str]
    bank: int


def treatment(episode: Episode, read: Transcript) -> Treatment:
    """What the prompt showed, against the round's curriculum. One query."""
    curriculum = Curriculum.objects.filter(round=episode.round_id).first()
    known = {
        str(c.get("skill_id")): c.get("rho") for c in (curriculum.chunks if curriculum else [])
    }
    shown = [Shown(chunk, known.get(chunk.skill_id)) for chunk in read.chunks]
    here = {chunk.skill_id for chunk in read.chunks}
    return Treatment(shown, [skill_id for skill_id in known if skill_id not in here], len(known))


def other_checkpoints(episode: Episode) -> list[Episode]:
    """The same task in the same arm by other checkpoints, newest first. One query."""
    if episode.group_index is not None or not episode.checkpoint:
        return []
    rows = Episode.objects.filter(
        experiment=episode.experiment_id,
        task_id=episode.task_id,
        split=episode.split,
        arm=episode.arm,
    ).exclude(checkpoint__in=["", episode.checkpoint])
    return list(rows.select_related("round").order_by("-pk")[:8])


def partner(episode: Episode, others: Sequence[Episode]) -> Episode | None:
    """Whom to compare with: the first that ended otherwise, else the first there is."""
    rest = [other for other in others if other.pk != episode.pk]
    unlike = [other for other in rest if other.scored and other.success != episode.success]
    return next(iter(unlike or rest), None)


def own_list(episode: Episode) -> dict[str, str]:
    """The list an episode belongs to when it was opened without one."""
    values = {"experiment": episode.experiment.name, "purpose": episode.purpose}
    if episode.round is not None:
        values["round"] = str(episode.round.number)
    if episode.step is not None:
        values["step"] = str(episode.step)
    return values


def _siblings(episode: Episode) -> list[Episode]:
    """The group in training (retries last); in evaluations the same task's other arms."""
    if episode.group_index is not None:
        rows = Episode.objects.filter(
            experiment=episode.experiment, group_index=episode.group_index
        )
    else:
        rows = Episode.objects.filter(
            experiment=episode.experiment,
            task_id=episode.task_id,
            split=episode.split,
            round=episode.round,
            group_index__isnull=True,
        )
    return sorted(
        rows.order_by("sample_id", "pk")[:64], key=lambda e: (e.purpose == "retry", e.sample_id)
    )


def _crumbs(episode: Episode) -> list[tuple[str, str]]:
    name = episode.experiment.name
    crumbs = [(name, reverse("experiments:detail", args=[name]))]
    query: dict[str, Any] = {"experiment": name, "purpose": episode.purpose}
    if episode.round is not None:
        number = episode.round.number
        query["round"] = number
        crumbs.append(
            (_("Round %(n)d") % {"n": number}, reverse("experiments:round", args=[name, number]))
        )
    if episode.step is not None:
        crumbs.append(
            (_("Step %(n)d") % {"n": episode.step}, episodes_url(**query, step=episode.step))
        )
    else:
        crumbs.append((word(PURPOSES, episode.purpose), episodes_url(**query)))
    if episode.group_index is not None:
        href = episodes_url(experiment=name, group=episode.group_index)
        crumbs.append((_("Group %(n)d") % {"n": episode.group_index}, href))
    crumbs.append((_("Episode %(n)s") % {"n": formats.count(episode.sample_id)}, ""))
    return crumbs
