"""Builds the episode page: what kind of ending, which treatment, how the siblings did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from intraskill_web.core.labels import PURPOSES, TRIAGE, word
from intraskill_web.episodes.endings import ending
from intraskill_web.episodes.links import episodes_url
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.reading import reading
from intraskill_web.episodes.shop_pages import mapping


def build(
    episode: Episode, trace: Mapping[str, Any], *, turn: int = 1, goal: bool = False
) -> dict[str, Any]:
    """The page's context. ``goal``: the reader may see the private goal. Three queries."""
    siblings = _siblings(episode)
    rewards = [s.reward for s in siblings if s.reward is not None and s.purpose == episode.purpose]
    name = episode.experiment.name
    return reading(episode, trace, turn=turn, goal=goal) | {
        "siblings": [(s, ending(s)) for s in siblings],
        "others": [(s, ending(s)) for s in other_checkpoints(episode)],
        "group_mean": fmean(rewards) if len(rewards) > 1 else None,
        "group_sd": stdev(rewards) if len(rewards) > 1 else None,
        "group_href": episodes_url(experiment=name, group=episode.group_index)
        if episode.group_index is not None
        else "",
        "task_href": episodes_url(experiment=name, task=episode.task_id, split=episode.split),
        "triage_word": word(TRIAGE, episode.triage),
        "retry": next((s for s in siblings if s.purpose == "retry"), None),
        "exact_tokens": "token_ids" in mapping(trace.get("tokens")),
        "crumbs": _crumbs(episode),
    }


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
    crumbs.append((episode.episode_id, ""))
    return crumbs
