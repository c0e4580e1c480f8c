"""Parameters of an address or a form: a value that is not understood is refused, never ignored.

The middleware ``core.json_errors`` answers the refusal with status 400, as a page or as JSON.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import overload

from django.utils.translation import gettext as _

from intraskill_web.experiments.models import Experiment
from trainer.errors import InputError

DIGITS = 16  # of a whole number, one more than any has
HUGE = 1e15
SHOWN = 20  # names of a long list that a refusal gives


class ParameterError(InputError):
    """A parameter whose value is unknown."""


def choice(query: Mapping[str, str], name: str, allowed: Iterable[str], default: str = "") -> str:
    """The value of a parameter that must be one of ``allowed``; ``default`` where it is not given.

    Raises ParameterError.
    """
    value = query.get(name, "")
    if not value:
        return default
    known = list(allowed)
    if value not in known:
        raise ParameterError(not_one_of(value, known), field=name)
    return value


@overload
def whole(
    query: Mapping[str, str], name: str, default: int = 0, *, among: range | None = None
) -> int: ...


@overload
def whole(
    query: Mapping[str, str], name: str, default: None, *, among: range | None = None
) -> int | None: ...


def whole(
    query: Mapping[str, str], name: str, default: int | None = 0, *, among: range | None = None
) -> int | None:
    """The value of a parameter that is a whole number, of ``among`` where that is given.

    ``default`` where it is not given. Raises ParameterError.
    """
    value = query.get(name, "")
    if not value:
        return default
    if not is_whole(value):
        raise ParameterError(
            _("%(value)s is not a whole number") % {"value": value[:80]}, field=name
        )
    if among is not None and int(value) not in among:
        raise ParameterError(
            _("%(value)s is not between %(least)s and %(most)s")
            % {"value": value, "least": among[0], "most": among[-1]},
            field=name,
        )
    return int(value)


def is_whole(text: str) -> bool:
    """Whether a text is a whole number, none that a database could not hold."""
    return text.isascii() and text.isdigit() and len(text) < DIGITS


def number(query: Mapping[str, str], name: str, default: float) -> float:
    """The value of a parameter that must be a number; ``default`` where it is not given.

    Raises ParameterError, also for numbers that no axis has.
    """
    text = query.get(name, "")
    try:
        value = float(text) if text else default
    except ValueError:
        value = math.nan
    if not abs(value) < HUGE:
        raise ParameterError(_("%(value)s is not a number") % {"value": text[:80]}, field=name)
    return value


def not_one_of(value: str, known: Iterable[str]) -> str:
    """What an unknown value is told, with the values there are."""
    names = list(known)
    allowed = ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
    return _("%(value)s is not one of %(allowed)s") % {
        "value": value[:80],
        "allowed": allowed or _("none yet"),
    }


def unknown_experiment(name: str) -> str:
    """Why there is nothing of the experiment ``name``; empty where it exists. One query or two."""
    if not name or Experiment.objects.filter(name=name).exists():
        return ""
    names = Experiment.objects.order_by("-id").values_list("name", flat=True)
    return not_one_of(name, names[: SHOWN + 1])


def experiment_in(query: Mapping[str, str]) -> str:
    """The parameter ``experiment``, empty or the name of one that exists. Raises ParameterError."""
    name = query.get("experiment", "")
    if problem := unknown_experiment(name):
        raise ParameterError(problem, field="experiment")
    return name
