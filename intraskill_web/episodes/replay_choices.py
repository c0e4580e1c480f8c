"""What can be chosen for a replay: checkpoints of the run, served models; or why nothing can."""

from __future__ import annotations

from django.utils.translation import gettext as _

from intraskill_web.episodes.models import Episode, Replay
from intraskill_web.episodes.replay_words import START, checkpoint_word, own_checkpoint
from intraskill_web.episodes.served import served_models
from trainer.errors import InputError

Choices = list[tuple[str, str]]


def checkpoints(episode: Episode) -> Choices:
    """Folder and name of every checkpoint of the run that is there: the episode's own first, then
    the newest.
    """
    run = episode.experiment.folder
    if episode.experiment.engine != "local" or not (run / "experiment.json").is_file():
        return []
    found = sorted(run.glob("round-[0-9][0-9][0-9]/train/checkpoint"), reverse=True)
    names = [folder.relative_to(run).as_posix() for folder in found]
    own = own_checkpoint(episode)
    ordered = sorted([*names, START], key=lambda name: name != own)
    there = [name for name in ordered if (run / name / "checkpoint.json").is_file()]
    return [(name, checkpoint_word(name)) for name in there]


def servers() -> tuple[Choices, str]:
    """Value and name of every served model, and what is wrong with the file that lists them."""
    try:
        found = served_models()
    except InputError as error:
        return [], str(error)
    return [
        (
            f"{Replay.SERVED}{name}",
            _("%(name)s: %(model)s at %(url)s")
            % {"name": name, "model": model.endpoint.model, "url": model.endpoint.base_url},
        )
        for name, model in found.items()
    ], ""


def why_not(episode: Episode, choices: Choices) -> str:
    """Why a replay is not possible; empty when it is."""
    if episode.round is None:
        return _("The episode belongs to no round, so the chunks that it could show are not known.")
    if choices:
        return ""
    if not (episode.experiment.folder / "experiment.json").is_file():
        return _(
            "The episode comes from elsewhere: its run folder is not here, and endpoints.yaml of "
            "the home names no served model."
        )
    if episode.experiment.engine == "slime":
        return _(
            "Checkpoints of slime are played through a server, and endpoints.yaml of the home "
            "names none."
        )
    return _("No checkpoint of this run is there, and endpoints.yaml names no served model.")
