"""The pages of one replay: what came of it beside the original, and each of its transcripts.

Both follow while it is played, and tell the same once its traces are published.
"""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from intraskill_web.core import live as polling
from intraskill_web.core.access import may_see_goal
from intraskill_web.core.parameters import whole
from intraskill_web.core.twin import page
from intraskill_web.episodes import compare_page, replay_files
from intraskill_web.episodes.following import Look, State, follow
from intraskill_web.episodes.models import Episode, Replay
from intraskill_web.episodes.reading import reading
from intraskill_web.episodes.replay_files import Played
from intraskill_web.episodes.replay_outcomes import Distribution, original
from intraskill_web.episodes.replay_words import bank_of, changes, checkpoint_word, original_word
from intraskill_web.episodes.traces import shown_trace
from trainer.rollout.private import public


@require_safe
def replay_episodes(request: HttpRequest, pk: int, replay_pk: int) -> HttpResponse:
    """The distribution of a replay's outcomes beside the original's, and its episodes."""
    row = _replay(pk, replay_pk)
    tag = polling.etag(request, replay_files.stamp(row))
    unchanged = polling.unchanged(request, tag)
    if unchanged is not None:
        return polling.finish(unchanged, tag, active=row.active)
    played = replay_files.played(row)
    ended = [_outcome(p.episode) for p in played if not p.running]
    context = _shown(row) | {
        "section": "episodes",
        "episode": row.episode,
        "found": Distribution.of(ended),
        "before": original(row.episode),
        "original_word": original_word(row.episode),
        "played": played,
        "ended": len(ended),
        "crumbs": _crumbs(row),
        "etag": tag,
        "active": row.active,
        "polling": polling.is_poll(request),
    }
    data = {
        "replay": row.pk,
        "state": row.state,
        "episodes": [
            {"sample": p.episode.sample_id, "running": p.running, "gone": p.gone}
            | _outcome(p.episode)
            for p in played
        ],
    }
    name = "_replay_live.html" if polling.is_poll(request) else "replay_episodes.html"
    answer = page(request, f"episodes/{name}", context, lambda: data)
    return polling.finish(answer, tag, active=row.active)


@require_safe
def replay_episode(request: HttpRequest, pk: int, replay_pk: int, sample: int) -> HttpResponse:
    """The transcript of one of them; the private goal only for those who may see it.

    ``?part=live&from=n`` answers what is new from turn n on, as long as it is played.
    """
    row = _replay(pk, replay_pk)
    if sample >= row.n:
        raise Http404
    told = replay_files.told(row, sample)
    known = None if told and told.running and row.active else replay_files.recorded(row, sample)
    if known is None or polling.is_poll(request):
        return follow(request, _look(row, sample, told, known), replay_files.stamp(row))
    return _recorded(request, row, sample, known)


def _look(row: Replay, sample: int, told: Played | None, known: Played | None) -> Look:
    """The live file while it tells of the episode, else its trace, else that it waits."""
    shown = _shown(row) | {
        "original": row.episode,
        "crumbs": [*_crumbs(row), (_("Episode %(n)s") % {"n": sample}, "")],
        "why_stopped": _("The replay does not run. “Again” on its page goes on with it."),
    }
    one = known or told
    if one is None:
        old = row.episode
        waiting = Episode(experiment=old.experiment, instruction=old.instruction)
        return Look(waiting, {}, "waiting" if row.active else "stopped", shown=shown)
    trace = public(one.trace)
    if known is not None:
        return Look(known.episode, trace, "recorded", _address(row, sample), shown)
    state: State = "running" if one.running else "ended"
    return Look(one.episode, trace, state if row.active else "stopped", shown=shown)


def _recorded(request: HttpRequest, row: Replay, sample: int, known: Played) -> HttpResponse:
    """Its transcript; with ``?with=original`` beside the original's, from their divergence."""
    goal = may_see_goal(request.user)
    ours = known.trace if goal else public(known.trace)
    comparing = request.GET.get("with") == "original"
    query = "?with=original" if comparing else ""
    problem = _("Its files are gone; what came of it is kept.") if known.gone else ""
    turn = whole(request.GET, "turn", 1)
    context = reading(known.episode, ours, turn=turn, goal=goal) | _shown(row)
    context |= {
        "section": "episodes",
        "original": row.episode,
        "ending": known.ending,
        "problem": problem,
        "crumbs": [*_crumbs(row), (_("Episode %(n)s") % {"n": sample}, "")],
        "previous_url": _address(row, sample - 1) + query if sample else "",
        "next_url": _address(row, sample + 1) + query if sample + 1 < row.n else "",
        "place": sample + 1,
        "count": row.n,
    }
    if comparing:
        trace, lost = shown_trace(row.episode, goal=goal)
        context["problem"] = problem or lost
        context |= compare_page.build(
            row.episode,
            trace,
            known.episode,
            ours,
            row=whole(request.GET, "row", None),
            names=(_("as it was"), _("replay")),
        )
    data = {"replay": row.pk, "sample": sample, "problem": problem} | _outcome(known.episode)
    data["trace"] = ours
    return page(request, "episodes/replay_episode.html", context, lambda: data)


def _replay(pk: int, replay_pk: int) -> Replay:
    rows = Replay.objects.select_related("episode__experiment", "episode__round")
    return get_object_or_404(rows, pk=replay_pk, episode=pk)


def _shown(row: Replay) -> dict[str, Any]:
    """What every page of a replay says of it. Two queries."""
    return {
        "replay": row,
        "changes": changes(row.episode, row, bank_of(row.episode)),
        "checkpoint": checkpoint_word(row.checkpoint),
        "treatment_word": _("replay"),
    }


def _outcome(episode: Episode) -> dict[str, Any]:
    return {"reward": episode.reward, "success": episode.success, "turns": episode.turns}


def _address(row: Replay, sample: int) -> str:
    return reverse("episodes:replayed", args=[row.episode_id, row.pk, sample])


def _crumbs(row: Replay) -> list[tuple[str, str]]:
    return [
        (_("Episodes"), reverse("episodes:list")),
        (row.episode.episode_id, reverse("episodes:detail", args=[row.episode_id])),
        (_("Replay"), reverse("episodes:replay", args=[row.episode_id])),
        (
            _("Replay %(n)s") % {"n": row.pk},
            reverse("episodes:replayed-all", args=[row.episode_id, row.pk]),
        ),
    ]
