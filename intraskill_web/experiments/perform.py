"""Doing what a button or a program asks for: one function an action, each returns what to say."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest
from django.utils.translation import gettext as _

from intraskill_web.core.access import actor_of
from intraskill_web.core.parameters import ParameterError, whole
from intraskill_web.experiments import planning, services
from intraskill_web.experiments.models import Experiment
from intraskill_web.experiments.queries import require_latest
from trainer.errors import InputError

Act = Callable[[Experiment, HttpRequest], str]


def perform(experiment: Experiment, action: str, request: HttpRequest) -> str:
    """Carry the action out as the user of the request. Raises InputError when it is refused.

    A request may name the ``round`` it is meant for: that to start, else the latest. Raises
    ParameterError for another.
    """
    number = _round(request)
    if number is not None and action != "start":
        require_latest(experiment, number)
    return PERFORM[action](experiment, request)


def _start(experiment: Experiment, request: HttpRequest) -> str:
    round_ = services.start_round(experiment, _round(request), actor=actor_of(request))
    return _("Round %(n)d starts") % {"n": round_.number}


def _stop(experiment: Experiment, request: HttpRequest) -> str:
    if not services.stop_round(experiment, actor=actor_of(request)):
        raise InputError(_("Nothing is running"))
    return _("Stopping; what is finished is kept")


def _resume(experiment: Experiment, request: HttpRequest) -> str:
    stage = services.resume_round(experiment, actor=actor_of(request))
    return _("Resumed at %(stage)s") % {"stage": stage.get_kind_display()}


def _pause(experiment: Experiment, request: HttpRequest) -> str:
    planning.pause_after_stage(experiment, True, actor=actor_of(request))
    return _("Pauses after this stage")


def _unpause(experiment: Experiment, request: HttpRequest) -> str:
    planning.pause_after_stage(experiment, False, actor=actor_of(request))
    return _("Does not pause")


def _extend(experiment: Experiment, request: HttpRequest) -> str:
    """A page says how many it offered to plan, so that pressing twice plans one more, not two."""
    planned = experiment.rounds_planned
    rounds, reason = whole(request.POST, "rounds", planned + 1), request.POST.get("reason", "")
    if rounds > planned:
        planning.set_rounds_planned(experiment, rounds, reason=reason, actor=actor_of(request))
    return _("%(n)d rounds are planned now") % {"n": experiment.rounds_planned}


def _until(experiment: Experiment, request: HttpRequest) -> str:
    rounds, reason = _rounds(request), request.POST.get("reason", "")
    planning.continue_until(experiment, rounds, reason=reason, actor=actor_of(request))
    return _("Goes on until %(n)d rounds are done") % {"n": experiment.rounds_planned}


def _hold(experiment: Experiment, request: HttpRequest) -> str:
    planning.hold_after_round(experiment, actor=actor_of(request))
    return _("Waits for you after each round")


def _round(request: HttpRequest) -> int | None:
    return whole(request.POST if "round" in request.POST else request.GET, "round", None)


def _rounds(request: HttpRequest) -> int:
    rounds = whole(request.POST, "rounds", None)
    if rounds is None:
        raise ParameterError(_("Give a whole number"), field="rounds", remedy=_("How many in all"))
    return rounds


PERFORM: dict[str, Act] = {
    "start": _start,
    "stop": _stop,
    "resume": _resume,
    "pause": _pause,
    "unpause": _unpause,
    "extend": _extend,
    "until": _until,
    "hold": _hold,
}
