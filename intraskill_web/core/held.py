"""What no database holds is refused at the door, whichever view would have asked for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db.models import BigIntegerField
from django.http import Http404, HttpRequest, UnreadablePostError
from django.utils.translation import gettext as _

from intraskill_web.core.parameters import ParameterError


def refuse_unheld(request: HttpRequest, values: Mapping[str, Any]) -> None:
    """Refuse numbers beyond 64 bits and texts with a NUL, which only some databases take.

    ``values`` are those of the address. Raises Http404 for them, also for a queue that rq's
    dashboard does not have, and ParameterError for a parameter or a field of a form.
    """
    for value in values.values():
        if isinstance(value, int) and value > BigIntegerField.MAX_BIGINT:
            raise Http404
        if isinstance(value, str) and "\0" in value:
            raise Http404
    if values.get("queue_index", 0) >= len(settings.RQ_QUEUES):
        raise Http404
    for name, sent in [*request.GET.lists(), *_form(request)]:
        if any(isinstance(value, str) and "\0" in value for value in sent):
            raise ParameterError(_("has a NUL, which no text has"), field=name)


def _form(request: HttpRequest) -> list[tuple[str, list[Any]]]:
    try:
        return list(request.POST.lists())
    except UnreadablePostError:  # cut off: the check of the form's token answers that
        return []
