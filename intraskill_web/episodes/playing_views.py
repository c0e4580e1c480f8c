"""Looking on: the episodes being played now, and one of them turn by turn to its end."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, islice, starmap
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from intraskill_web.core import live as polling
from intraskill_web.core.labels import PURPOSES, word
from intraskill_web.core.twin import page
from intraskill_web.episodes import playing, replay_files
from intraskill_web.episodes.endings import Ending, ending
from intraskill_web.episodes.following import Look, State, follow
from intraskill_web.episodes.heard import Heard
from intraskill_web.episodes.models import Episode, Replay
from intraskill_web.episodes.traces import shown_trace
from intraskill_web.experiments.models import Round, Stage
from jobs.transitions import ACTIVE
from trainer.rollout.private import public


@dataclass(frozen=True, slots=True)
class Line:
    """An episode of the list."""

    told: Heard
    ending: Ending | None
    address: str
    where: str


@require_safe
def playing_list(request: HttpRequest) -> HttpResponse:
    """Every episode that an engine tells of now."""
    told = chain(
        map(_line, playing.being_played()), starmap(_replayed, replay_files.being_played())
    )
    lines = list(islice(told, playing.MOST))
    facts = [(line.address, line.told.episode.turns, line.told.running) for line in lines]
    working = Stage.objects.filter(state__in=ACTIVE).exists()
    active = working or Replay.objects.filter(state__in=("requested", "running")).exists()
    tag = polling.etag(request, facts)
    unchanged = polling.unchanged(request, tag)
    if unchanged is not None:
        return polling.finish(unchanged, tag, active=active)
    context = {
        "section": "episodes",
        "lines": lines,
        "working": working,
        "crumbs": [(_("Episodes"), reverse("episodes:list")), (_("Being played"), "")],
        "etag": tag,
        "active": active,
        "polling": polling.is_poll(request),
    }
    data = {
        "playing": [
            {"url": line.address, "turns": line.told.episode.turns, "running": line.told.running}
            for line in lines
        ]
    }
    name = "_playing_list.html" if polling.is_poll(request) else "playing_list.html"
    return polling.finish(
        page(request, f"episodes/{name}", context, lambda: data), tag, active=active
    )


@require_safe
def playing_episode(request: HttpRequest, round_pk: int, folder: str, name: str) -> HttpResponse:
    """An episode that is being played; ``?part=live&from=n`` answers what is new from turn n on.

    The page of a finished one is that of its row.
    """
    round_ = get_object_or_404(Round.objects.select_related("experiment"), pk=round_pk)
    kind = playing.stage_of(folder)
    if not kind:
        raise Http404
    look = _look(round_, folder, name, kind)
    if look.recorded and not polling.is_poll(request):
        return redirect(look.recorded)
    return follow(request, look, playing.stamp(round_, folder))


def _look(round_: Round, folder: str, name: str, kind: str) -> Look:
    """The live file before the row while it is played, the row as soon as that is over."""
    told = playing.told_of(round_, folder, name)
    row = None if told and told.running else playing.recorded(round_, folder, name)
    works = Stage.objects.filter(round=round_, kind=kind, state__in=ACTIVE).exists()
    if row is not None:
        row.experiment = round_.experiment
        trace = public(told.trace) if told else shown_trace(row, goal=False)[0]
        recorded = reverse("episodes:detail", args=[row.pk])
        return Look(row, trace, "recorded", recorded, _shown(row))
    if told is None:
        unknown = Episode(experiment=round_.experiment, episode_id=name)
        return Look(unknown, {}, "waiting" if works else "stopped", shown=_shown(unknown))
    state: State = "running" if told.running else "ended"
    shown = _shown(told.episode)
    return Look(told.episode, public(told.trace), state if works else "stopped", shown=shown)


def _shown(episode: Episode) -> dict[str, Any]:
    return {
        "crumbs": [
            (_("Episodes"), reverse("episodes:list")),
            (_("Being played"), reverse("episodes:playing")),
            (episode.episode_id, ""),
        ],
        "why_stopped": _("The stage does not run. When it goes on, the episode is played again."),
    }


def _line(told: playing.Told) -> Line:
    episode = told.episode
    return Line(
        told,
        None if told.running else ending(episode),
        reverse("episodes:follow", args=[told.round.pk, told.folder, episode.episode_id]),
        _("%(name)s, round %(n)s") % {"name": episode.experiment.name, "n": told.round.number}
        + f", {word(PURPOSES, episode.purpose)}",
    )


def _replayed(row: Replay, played: replay_files.Played) -> Line:
    address = reverse("episodes:replayed", args=[row.episode_id, row.pk, played.episode.sample_id])
    where = f"{row.episode.experiment.name}, {_('replay')} {row.pk}"
    return Line(played, played.ending, address, where)
