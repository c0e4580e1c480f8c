"""The episodes of a replay: what came of each, and each one's transcript.

They have no rows: nothing of a replay is ever searched, counted or trained on. Their traces are
read from the replay's own folder, the running ones from its live file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from intraskill_web.core.access import may_see_goal
from intraskill_web.core.labels import TERMINATIONS, word
from intraskill_web.core.twin import page
from intraskill_web.episodes.endings import Ending, ending
from intraskill_web.episodes.models import Episode, Replay
from intraskill_web.episodes.prepare import parse
from intraskill_web.episodes.reading import reading
from intraskill_web.episodes.replay_outcomes import Distribution, changes, original
from intraskill_web.episodes.rows import episode_values
from intraskill_web.episodes.traces import answerable
from trainer.errors import InputError
from trainer.rollout import live

PURPOSE = "replay"


@dataclass(frozen=True, slots=True)
class Played:
    """An episode of a replay; ``episode`` is never saved."""

    episode: Episode
    trace: dict[str, Any]

    @property
    def running(self) -> bool:
        return self.trace.get("status") == "running"

    @property
    def ended_by(self) -> str:
        """What ended it, in a word."""
        return word(TERMINATIONS, self.episode.termination)

    @property
    def ending(self) -> Ending | None:
        """How it ended; None while it is played."""
        return None if self.running else ending(self.episode)


@require_safe
def replay_episodes(request: HttpRequest, pk: int, replay_pk: int) -> HttpResponse:
    """The distribution of a replay's outcomes beside the original's, and its episodes."""
    row = _replay(pk, replay_pk)
    played = sorted(_played(row), key=lambda p: p.episode.sample_id)
    context = {
        "section": "episodes",
        "episode": row.episode,
        "replay": row,
        "changes": changes(row.episode, row),
        "found": Distribution.of([_outcome(p.episode) for p in played if not p.running]),
        "original": original(row.episode),
        "played": played,
        "crumbs": _crumbs(row),
    }
    data = {
        "replay": row.pk,
        "state": row.state,
        "episodes": [
            {"sample": p.episode.sample_id, "running": p.running, **_outcome(p.episode)}
            for p in played
        ],
    }
    return page(request, "episodes/replay_episodes.html", context, lambda: data)


@require_safe
def replay_episode(request: HttpRequest, pk: int, replay_pk: int, sample: int) -> HttpResponse:
    """The transcript of one of them; the private goal only for those who may see it."""
    row = _replay(pk, replay_pk)
    played = {p.episode.sample_id: p for p in _played(row)}
    if sample not in played:
        raise Http404
    shown, goal = played[sample], may_see_goal(request.user)
    if not goal and isinstance(shown.trace.get("final"), dict):
        shown.trace["final"].pop("goal", None)
    order = sorted(played)
    at = order.index(sample)
    text = request.GET.get("turn", "")
    turn = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 1
    context = reading(shown.episode, shown.trace, turn=turn, goal=goal) | {
        "section": "episodes",
        "original": row.episode,
        "replay": row,
        "changes": changes(row.episode, row),
        "ending": shown.ending,
        "crumbs": [*_crumbs(row), (_("Episode %(n)s") % {"n": sample}, "")],
        "previous_url": _address(row, order[at - 1]) if at else "",
        "next_url": _address(row, order[at + 1]) if at + 1 < len(order) else "",
        "place": at + 1,
        "count": len(order),
    }
    data = {"replay": row.pk, "sample": sample, "trace": shown.trace}
    return page(request, "episodes/replay_episode.html", context, lambda: data)


def _replay(pk: int, replay_pk: int) -> Replay:
    rows = Replay.objects.select_related("episode__experiment", "episode__round")
    return get_object_or_404(rows, pk=replay_pk, episode=pk)


def _played(row: Replay) -> Iterator[Played]:
    """The recorded episodes, of several tries the last, and those that are being played."""
    found: dict[int, Played] = {}
    for line in (*_recorded(row), *live.read_live(_live_file(row))):
        try:
            trace = answerable(line)
            values = episode_values(trace, purpose=PURPOSE, arm="")
        except InputError:
            continue  # damage: the others are still shown
        round_, experiment = row.episode.round, row.episode.experiment
        made = Played(Episode(experiment=experiment, round=round_, **values), trace)
        found[made.episode.sample_id] = made
    yield from found.values()


def _live_file(row: Replay) -> Path:
    return row.folder / "run" / live.FOLDER / live.BATCH


def _recorded(row: Replay) -> Iterator[Any]:
    file = row.folder / "run" / "traces.jsonl"
    if not file.is_file():
        return
    with file.open("rb") as handle:
        for line in handle:
            try:
                yield parse(line)
            except InputError:  # torn, or damaged
                continue


def _outcome(episode: Episode) -> dict[str, Any]:
    return {"reward": episode.reward, "success": episode.success, "turns": episode.turns}


def _address(row: Replay, sample: int) -> str:
    return reverse("episodes:replayed", args=[row.episode_id, row.pk, sample])


def _crumbs(row: Replay) -> list[tuple[str, str]]:
    title = row.episode.instruction or row.episode.episode_id
    return [
        (_("Episodes"), reverse("episodes:list")),
        (title[:60], reverse("episodes:detail", args=[row.episode_id])),
        (_("Replay"), reverse("episodes:replay", args=[row.episode_id])),
        (
            _("Replay %(n)s") % {"n": row.pk},
            reverse("episodes:replayed-all", args=[row.episode_id, row.pk]),
        ),
    ]
