"""Builds the episode page: what kind of ending, which treatment, how the siblings did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from intraskill_web.core import formats
from intraskill_web.core.labels import PURPOSES, TERMINATIONS, TREATMENTS, TRIAGE, word
from intraskill_web.episodes.links import episodes_url
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.transcript import Transcript, transcript
from trainer.shop.types import REWARD_PARTS

WINDOW = 50  # turns shown at once


@dataclass(frozen=True, slots=True)
class Ending:
    """The badge of an episode: a state's look and a word. Technical, truncated and policy
    differ.
    """

    state: str
    icon: str
    text: str


@dataclass(frozen=True, slots=True)
class Part:
    """One reward part between 0 and 1."""

    name: str
    value: float | None


def build(episode: Episode, trace: Mapping[str, Any]) -> dict[str, Any]:
    """The page's context; two queries (siblings, rho)."""
    read: Transcript = transcript(trace)
    siblings = _siblings(episode)
    rewards = [s.reward for s in siblings if s.reward is not None and s.purpose == episode.purpose]
    return {
        "episode": episode,
        "ending": ending(episode),
        "read": read,
        "turns": read.turns[:WINDOW],
        "hidden_turns": max(0, len(read.turns) - WINDOW),
        "parts": [Part(name, getattr(episode, name)) for name in REWARD_PARTS],
        "siblings": [(s, ending(s)) for s in siblings],
        "group_mean": fmean(rewards) if rewards else None,
        "group_sd": stdev(rewards) if len(rewards) > 1 else None,
        "group_href": episodes_url(
            experiment=episode.experiment.name, group=episode.group_index
        ) if episode.group_index is not None else "",
        "task_href": episodes_url(
            experiment=episode.experiment.name, task=episode.task_id, split=episode.split
        ),
        "treatment_word": word(TREATMENTS, episode.treatment_mode),
        "purpose_word": word(PURPOSES, episode.purpose),
        "termination_word": word(TERMINATIONS, episode.termination),
        "triage_word": word(TRIAGE, episode.triage),
        "crumbs": _crumbs(episode),
    }  # fmt: skip


def ending(episode: Episode) -> Ending:
    """Technical failure, truncation, turn limit, policy failure, success: five different things."""
    if not episode.scored:
        return Ending("lost", "wrench", _("Technical failure"))
    if episode.success:
        return Ending("succeeded", "succeeded", _("Success"))
    if episode.termination == "generation_length":
        return Ending("incomplete", "cut", _("Truncated"))
    if episode.termination == "action_limit":
        return Ending("incomplete", "incomplete", _("Turn limit"))
    return Ending("failed", "failed", _("Policy failure"))


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
