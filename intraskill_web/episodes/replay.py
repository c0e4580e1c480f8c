"""The replay page: choose chunks, checkpoint and n; see what came of it beside the original."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from intraskill_web.core import audit
from intraskill_web.core import live as polling
from intraskill_web.core.access import actor_of, may_operate
from intraskill_web.core.handed_in import this_host
from intraskill_web.core.parameters import whole
from intraskill_web.core.twin import page
from intraskill_web.episodes import replay_choices, replay_files
from intraskill_web.episodes.detail import own_list
from intraskill_web.episodes.endings import ending
from intraskill_web.episodes.links import episodes_url
from intraskill_web.episodes.models import Episode, Replay
from intraskill_web.episodes.replay_choices import Choices
from intraskill_web.episodes.replay_outcomes import Distribution, original
from intraskill_web.episodes.replay_words import (
    Changes,
    bank_of,
    changes,
    checkpoint_word,
    original_word,
)
from jobs import queue

MOST = 64
USUAL = 16
SHOWN = 20


@dataclass(frozen=True, slots=True)
class Line:
    """A replay of the list; ``found`` are its outcomes, while it is played those so far."""

    replay: Replay
    changes: Changes
    checkpoint: str
    found: Distribution
    silent: bool

    @classmethod
    def of(cls, row: Replay, bank: Mapping[str, str]) -> Line:
        """What its row tells; of one that has not succeeded, what its folder does."""
        outcomes = row.outcomes
        if row.state != "succeeded":
            ended = [p.episode for p in replay_files.played(row) if not p.running]
            outcomes = [{"reward": e.reward, "success": e.success, "turns": e.turns} for e in ended]
        return cls(
            row,
            changes(row.episode, row, bank),
            checkpoint_word(row.checkpoint),
            Distribution.of(outcomes),
            replay_files.silent(row),
        )


@require_http_methods(["GET", "HEAD", "POST"])
def replay(request: HttpRequest, pk: int) -> HttpResponse:
    """The form and the replays so far; POST asks for one."""
    episode = get_object_or_404(Episode.objects.select_related("experiment", "round"), pk=pk)
    if request.method != "POST":
        return _page(request, episode, [])
    if not may_operate(request.user):
        raise PermissionDenied
    errors: list[str] = []
    if "again" in request.POST:
        _again(episode, whole(request.POST, "again"))
    else:
        _ask(request, episode, errors)
    if errors:
        return _page(request, episode, errors)
    return redirect(reverse("episodes:replay", args=[pk]))


def _page(request: HttpRequest, episode: Episode, errors: list[str]) -> HttpResponse:
    rows = list(episode.replays.select_related("episode__experiment", "episode__round")[:SHOWN])
    tag = polling.etag(request, [replay_files.stamp(row) for row in rows])
    active = any(row.active for row in rows)
    unchanged = polling.unchanged(request, tag)
    if unchanged is not None:
        return polling.finish(unchanged, tag, active=active)
    bank = bank_of(episode)
    choices, problem = _choices(episode)
    why = replay_choices.why_not(episode, choices)
    if not why and not may_operate(request.user):
        why = _("Only operators may start a replay.")
    asked = request.POST if request.method == "POST" else None
    shown = set(asked.getlist("chunk")) if asked is not None else _suggested(request, episode)
    context = {
        "section": "episodes",
        "episode": episode,
        "ending": ending(episode),
        "bank": [(skill_id, title, skill_id in shown) for skill_id, title in bank.items()],
        "checkpoints": choices,
        "chosen": asked.get("checkpoint", "") if asked is not None else "",
        "n": asked.get("n", "") if asked is not None else USUAL,
        "most": MOST,
        "problem": problem,
        "why": why,
        "errors": errors,
        "lines": [Line.of(row, bank) for row in rows],
        "original": original(episode),
        "original_word": original_word(episode),
        "original_href": episodes_url(**own_list(episode), task=episode.task_id),
        "etag": tag,
        "active": active,
        "polling": polling.is_poll(request),
    }

    def data() -> dict[str, Any]:
        return {
            "episode": episode.pk,
            "replays": [
                {
                    "id": row.pk,
                    "state": row.state,
                    "error": row.error,
                    "skill_ids": row.skill_ids,
                    "checkpoint": row.checkpoint,
                    "n": row.n,
                    "outcomes": row.outcomes,
                }
                for row in rows
            ],
        }

    name = "_replays.html" if polling.is_poll(request) else "replay.html"
    answer = page(request, f"episodes/{name}", context, data, status=400 if errors else 200)
    return polling.finish(answer, tag, active=active)


def _suggested(request: HttpRequest, episode: Episode) -> set[str]:
    """The chunks that a link of the episode page asks for (``?with=``, ``?without=``)."""
    wanted = set(episode.skill_ids) | set(request.GET.getlist("with"))
    return wanted - set(request.GET.getlist("without"))


def _choices(episode: Episode) -> tuple[Choices, str]:
    """Whatever can play it, and what is wrong with the list of servers."""
    servers, problem = replay_choices.servers()
    return [*replay_choices.checkpoints(episode), *servers], problem


def _ask(request: HttpRequest, episode: Episode, errors: list[str]) -> None:
    """Hand in a replay as the form asks for it, or fill ``errors``."""
    bank, (choices, _problem) = bank_of(episode), _choices(episode)
    why = replay_choices.why_not(episode, choices)
    if why:
        errors.append(why)
        return
    wanted = set(request.POST.getlist("chunk"))
    chosen = [skill_id for skill_id in bank if skill_id in wanted]
    n = whole(request.POST, "n")
    checkpoint = request.POST.get("checkpoint", "")
    if not 1 <= n <= MOST:
        errors.append(_("n must be between 1 and %(most)s") % {"most": MOST})
    if wanted - set(chosen):
        errors.append(_("a chunk is not in the bank of this round"))
    if checkpoint not in dict(choices):
        errors.append(_("this checkpoint is not there"))
    if errors:
        return
    with transaction.atomic():
        made = Replay.objects.create(
            episode=episode, skill_ids=chosen, checkpoint=checkpoint, n=n,
            owner_id=request.user.pk,
        )  # fmt: skip
        audit.record(
            "episode.replay",
            actor=actor_of(request),
            experiment=episode.experiment.name,
            subject=str(episode.pk),
            n=n,
        )
        queue.enqueue_work_on_commit(Replay.JOB, made.pk, f"replay-{made.pk}")


def _again(episode: Episode, number: int) -> None:
    """Hand a replay in once more: one that failed, or whose worker is gone. It goes on from its
    files.
    """
    row = episode.replays.filter(pk=number).exclude(state="succeeded").first()
    if row is not None:
        stamp = timezone.now().strftime("%Y%m%d%H%M%S")
        with transaction.atomic():
            # one that runs here may be playing: then the new job leaves it alone
            others = Replay.objects.filter(pk=row.pk).exclude(state="running", host=this_host())
            others.exclude(state="succeeded").update(
                state="requested", error="", tries=0, host=this_host()
            )
            queue.enqueue_work_on_commit(Replay.JOB, row.pk, f"replay-{row.pk}-{stamp}")
