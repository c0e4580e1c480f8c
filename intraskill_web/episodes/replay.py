"""The replay page: choose chunks, checkpoint and n; see what came of it beside the original."""

from __future__ import annotations

from pathlib import Path
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
from intraskill_web.episodes.replay_outcomes import Distribution, changes, original
from intraskill_web.episodes.served import served_models
from intraskill_web.skills.models import Curriculum, SkillVersionChunk
from jobs import queue
from trainer.errors import InputError

RUN_REPLAY = "jobs.episodes.replay.run_replay"
MOST = 64
USUAL = 16
SHOWN = 20
SERVED = Replay.SERVED


@require_http_methods(["GET", "HEAD", "POST"])
def replay(request: HttpRequest, pk: int) -> HttpResponse:
    """The form and the replays so far; POST asks for one."""
    episode = get_object_or_404(Episode.objects.select_related("experiment", "round"), pk=pk)
    bank = _bank(episode)
    servers, problem = _servers()
    checkpoints = [*_checkpoints(episode), *servers]
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
        "problem": problem,
        "why": why or ("" if may else _("Only operators may start a replay.")),
        "errors": [*errors, why] if errors and why else errors,
        "replays": [(row, Distribution.of(row.outcomes), changes(episode, row)) for row in rows],
        "original": original(episode),
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
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    row = episode.replays.filter(pk=number).exclude(state="succeeded").first()
    if row is not None:
        stamp = timezone.now().strftime("%Y%m%d%H%M%S")
        with transaction.atomic():
            # one that runs may be playing: then the new job leaves it alone
            ended = Replay.objects.filter(pk=row.pk).exclude(state__in=["running", "succeeded"])
            ended.update(state="requested", error="")
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
    if episode.experiment.engine != "local" or not (run / "experiment.json").is_file():
        return found
    for folder in sorted(run.glob("round-[0-9][0-9][0-9]/train/checkpoint"), reverse=True):
        if (folder / "checkpoint.json").is_file():
            number = int(folder.parts[-3][-3:])
            name = _("after round %(n)s") % {"n": number}
            found.append((folder.relative_to(run).as_posix(), name))
    start = Path("start") / "checkpoint"
    if (run / start / "checkpoint.json").is_file():
        found.append((start.as_posix(), _("start")))
    return found


def _servers() -> tuple[list[tuple[str, str]], str]:
    """Value and name of every served model, and what is wrong with the file that lists them."""
    try:
        found = served_models()
    except InputError as error:
        return [], str(error)
    return [
        (
            f"{SERVED}{name}",
            _("%(name)s: %(model)s at %(url)s")
            % {"name": name, "model": model.endpoint.model, "url": model.endpoint.base_url},
        )
        for name, model in found.items()
    ], ""


def _why_not(episode: Episode, checkpoints: list[tuple[str, str]]) -> str:
    """Why a replay is not possible; empty when it is."""
    if episode.round is None:
        return _("The episode belongs to no round, so the chunks that it could show are not known.")
    if checkpoints:
        return ""
    if not (episode.experiment.folder / "experiment.json").is_file():
        return _(
            "The episode comes from elsewhere: its run folder is not here, and endpoints.yaml of "
            "the home names no served model."
        )
    return _("No checkpoint of this run is there, and endpoints.yaml names no served model.")
