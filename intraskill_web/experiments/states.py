"""The states of ``jobs.transitions`` and the kinds of stages, with the words people read."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from jobs import transitions
from jobs.transitions import RoundState, State

STATE_LABELS = {
    State.REQUESTED: _("requested"),
    State.QUEUED: _("queued"),
    State.STARTING: _("starting"),
    State.RUNNING: _("running"),
    State.STOPPING: _("stopping"),
    State.SUCCEEDED: _("succeeded"),
    State.SKIPPED: _("skipped"),
    State.INCOMPLETE: _("incomplete"),
    State.FAILED: _("failed"),
    State.STOPPED: _("stopped"),
    State.LOST: _("lost"),
}
ROUND_STATE_LABELS = {
    RoundState.PLANNED: _("planned"),
    RoundState.RUNNING: _("running"),
    RoundState.STOPPING: _("stopping"),
    RoundState.STOPPED: _("stopped"),
    RoundState.FAILED: _("failed"),
    RoundState.SUCCEEDED: _("succeeded"),
}
STAGE_LABELS = {
    "freeze": _("Freeze curriculum"),
    "train": _("Train"),
    "analyse": pgettext_lazy("stage", "Analyse failures"),
    "validate": _("Validate"),
    "gate": _("Gate"),
    "select": _("Select"),
}
WAITING = "waiting"  # shown of a round or experiment whose stage waits for its turn
STATE_CHOICES = [(state.value, label) for state, label in STATE_LABELS.items()]
ROUND_STATE_CHOICES = [(state.value, label) for state, label in ROUND_STATE_LABELS.items()]
STAGE_CHOICES = list(STAGE_LABELS.items())
STAGE_ORDER = tuple(STAGE_LABELS)


def shown_state(state: str, stage: str | None) -> str:
    """What a badge says of a round or experiment in ``state`` whose active stage is in ``stage``.

    To its pipeline it runs as soon as it is asked for; who looks wants to know whether it works.
    """
    waits = state == RoundState.RUNNING and stage in transitions.WAITING
    return WAITING if waits else state
