"""The replay page: choose chunks, checkpoint and n; see what came of it beside the original."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
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
from intraskill_web.core.access import may_operate
from intraskill_web.core.twin import page
from intraskill_web.episodes.detail import own_list
from intraskill_web.episodes.endings import ending
from intraskill_web.episodes.links import episodes_url
from intraskill_web.episodes.models import Episode, Replay
from intraskill_web.skills.models import Curriculum, SkillVersionChunk
from jobs import queue

RUN_REPLAY = "jobs.episodes.replay.run_replay"
MOST = 64
USUAL = 16
SHOWN = 20


@dataclass(frozen=True, slots=True)
class Distribution:
    """The outcomes of a treatment on this task."""

    n: int
    scored: int
    success: int
    mean: float | None
    turns: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, outcomes: list[dict[str, Any]]) -> Distribution:
        """Success with its 95 % Wilson interval over the scored ones."""
        scored = [o for o in outcomes if o["reward"] is not None]
        won = sum(bool(o["success"]) for o in scored)
        low, high = wilson(won, len(scored))
        return cls(
            n=len(outcomes),
            scored=len(scored),
            success=won,
            mean=fmean(o["reward"] for o in scored) if scored else None,
            turns=fmean(o["turns"] for o in scored) if scored else None,
            low=low,
            high=high,
        )


def wilson(won: int, n: int) -> tuple[float | None, float | None]:
    """The 95 % score interval of a share (Wilson 1927); nothing for n = 0."""
    if not n:
        return None, None
    z = 1.959964
    share = won / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * ((share * (1 - share) + z * z / (4 * n)) / n) ** 0.5 / (1 + z * z / n)
    return max(0.0, middle - half), min(1.0, middle + half)


@require_http_methods(["GET", "HEAD", "POST"])
def replay(request: HttpRequest, pk: int) -> HttpResponse:
    """The form and the replays so far; POST asks for one."""
    episode = get_object_or_404(Episode.objects.select_related("experiment", "round"), pk=pk)
    bank = _bank(episode)
    checkpoints = _checkpoints(episode)
    why = _why_not(episode, checkpoints)
    may = may_operate(request.user)
    errors: list[str] = []
    if request.method == "POST":
        if not may:
            raise PermissionDenied
        if "again" in request.POST:
            _again(episode, request.POST["again"])
            return redirect(reverse("episodes:replay", args=[pk]))
        made = None if why else _ask(request, episode, bank, checkpoints, errors)
        if made is not None:
            return redirect(reverse("episodes:replay", args=[pk]))
    rows = list(episode.replays.all()[:SHOWN])
    context = {
        "section": "episodes",
        "episode": episode,
        "ending": ending(episode),
        "bank": [(skill_id, title, skill_id in episode.skill_ids) for skill_id, title in bank],
        "checkpoints": checkpoints,
        "usual": USUAL,
        "most": MOST,
        "why": why or ("" if may else _("Only operators may start a replay.")),
        "errors": [*errors, why] if errors and why else errors,
        "replays": [(row, Distribution.of(row.outcomes), _changes(episode, row)) for row in rows],
        "original": Distribution.of([_outcome(e) for e in _like(episode)]),
        "original_href": episodes_url(**own_list(episode), task=episode.task_id),
        "states": Replay.STATES,
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

    return page(request, "episodes/replay.html", context, data, status=400 if errors else 200)


def _ask(
    request: HttpRequest,
    episode: Episode,
    bank: list[tuple[str, str]],
    checkpoints: list[tuple[str, str]],
    errors: list[str],
) -> Replay | None:
    """A replay as the form asks for it, handed in on commit; None with ``errors`` filled."""
    wanted = set(request.POST.getlist("chunk"))
    chosen = [skill_id for skill_id, _title in bank if skill_id in wanted]
    text = request.POST.get("n", "")
    n = int(text) if text.isascii() and text.isdigit() and len(text) < 4 else 0
    checkpoint = request.POST.get("checkpoint", "")
    if not 1 <= n <= MOST:
        errors.append(_("n must be between 1 and %(most)s") % {"most": MOST})
    if wanted - set(chosen):
        errors.append(_("a chunk is not in the bank of this round"))
    if checkpoint not in dict(checkpoints):
        errors.append(_("this checkpoint is not there"))
    if errors:
        return None
    with transaction.atomic():
        made = Replay.objects.create(
            episode=episode, skill_ids=chosen, checkpoint=checkpoint, n=n,
            owner_id=request.user.pk,
        )  # fmt: skip
        audit.record(
            "episode.replay",
            actor=request.user,  # type: ignore[arg-type]
            experiment=episode.experiment.name,
            subject=str(episode.pk),
            n=n,
        )
        queue.enqueue_work_on_commit(RUN_REPLAY, made.pk, f"replay-{made.pk}")
    return made


def _again(episode: Episode, text: str) -> None:
    """Hand a replay in once more: one that failed, or whose worker is gone. It goes on from its
    files.
    """
    found = episode.replays.filter(pk=int(text) if text.isdigit() and len(text) < 10 else 0)
    row = found.exclude(state="succeeded").first()
    if row is not None:
        stamp = timezone.now().strftime("%Y%m%d%H%M%S")
        with transaction.atomic():
            Replay.objects.filter(pk=row.pk).update(state="requested", error="")
            queue.enqueue_work_on_commit(RUN_REPLAY, row.pk, f"replay-{row.pk}-{stamp}")


def _bank(episode: Episode) -> list[tuple[str, str]]:
    """Id and title of every chunk of the round's bank, in its order."""
    curriculum = Curriculum.objects.filter(round=episode.round_id).first()
    if curriculum is None:
        return []
    entries = SkillVersionChunk.objects.filter(version=curriculum.version_id)
    rows = entries.order_by("order").values_list("revision__skill_id", "revision__title")
    return [(skill_id, title or skill_id) for skill_id, title in rows]


def _checkpoints(episode: Episode) -> list[tuple[str, str]]:
    """Folder and name of every checkpoint of the run that is there, the episode's round first."""
    run = episode.experiment.folder
    found: list[tuple[str, str]] = []
    for folder in sorted(run.glob("round-[0-9][0-9][0-9]/train/checkpoint"), reverse=True):
        if (folder / "checkpoint.json").is_file():
            number = int(folder.parts[-3][-3:])
            name = _("after round %(n)s") % {"n": number}
            found.append((folder.relative_to(run).as_posix(), name))
    start = Path("start") / "checkpoint"
    if (run / start / "checkpoint.json").is_file():
        found.append((start.as_posix(), _("start")))
    return found


def _why_not(episode: Episode, checkpoints: list[tuple[str, str]]) -> str:
    """Why a replay is not possible; empty when it is."""
    if episode.round is None or not (episode.experiment.folder / "experiment.json").is_file():
        return _("The episode comes from elsewhere: its run folder is not here.")
    if episode.experiment.engine != "local":
        return _("Only runs of the embedded engine can be replayed here.")
    return "" if checkpoints else _("No checkpoint of this run is there.")


def _like(episode: Episode) -> list[Episode]:
    """The original and what stands beside it under the same treatment: its group or its arm."""
    rows = Episode.objects.filter(experiment=episode.experiment_id, purpose=episode.purpose)
    if episode.group_index is not None:
        return list(rows.filter(group_index=episode.group_index)[:SHOWN])
    return list(
        rows.filter(round=episode.round_id, arm=episode.arm, task_id=episode.task_id)[:SHOWN]
    )


def _outcome(episode: Episode) -> dict[str, Any]:
    return {"reward": episode.reward, "success": episode.success, "turns": episode.turns}


def _changes(episode: Episode, row: Replay) -> str:
    """What a replay changed of the treatment, in words."""
    before, now = list(episode.skill_ids), list(row.skill_ids)
    parts = ["+" + skill_id for skill_id in now if skill_id not in before]
    parts += ["−" + skill_id for skill_id in before if skill_id not in now]
    return ", ".join(parts) or _("the same chunks")
