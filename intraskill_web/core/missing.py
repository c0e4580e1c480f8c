"""What is not there, in words: the experiment, its round, or the address. Pages and JSON alike."""

from __future__ import annotations

from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from intraskill_web.core.commands import experiment_named
from trainer.errors import InputError


class Missing(NamedTuple):
    """Why there is nothing, and the experiment that is there, from which one can go on."""

    words: str
    experiment: str = ""


def missing(request: HttpRequest) -> Missing:
    """What the address of ``request`` names and there is not."""
    match = request.resolver_match
    if match and match.route.startswith("experiments/<slug:name>/"):
        try:
            experiment = experiment_named(match.kwargs["name"])
        except InputError as error:
            return Missing(str(error))
        number = match.kwargs.get("number")
        begun = sorted(experiment.rounds.values_list("number", flat=True))
        if number is not None and "rounds/<int:number>/" in match.route and number not in begun:
            is_planned = number < experiment.rounds_planned
            refusal = InputError(
                _("the round is planned and has not begun") if is_planned else _("no such round"),
                field="round",
                value=number,
                remedy=_("known: %(rounds)s")
                % {"rounds": ", ".join(map(str, begun)) or _("none yet")},
            )
            return Missing(str(refusal), experiment.name)
        return Missing(_address(request), experiment.name)
    return Missing(_address(request))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The page of an address where there is nothing (``handler404``)."""
    return render(request, "404.html", {"missing": missing(request)}, status=404)


def _address(request: HttpRequest) -> str:
    return _("there is nothing at %(address)s") % {"address": request.path}
