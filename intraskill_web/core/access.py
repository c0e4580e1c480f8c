"""Who may do what, asked once a request and in one query."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Permission
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from intraskill_web.core.prepared import Prepared
from intraskill_web.core.roles import OPERATE, SEE_GOAL


def may_operate(user: Any) -> bool:
    """Whether ``user`` holds ``experiments.operate``, by himself or through a group."""
    return _holds(user, OPERATE, "operates")


def may_see_goal(user: Any) -> bool:
    """Whether ``user`` may see the private goals of episodes."""
    return _holds(user, SEE_GOAL, "sees_goals")


def _holds(user: Any, permission: str, remembered: str) -> bool:
    """What ``user.has_perm`` says. The user of a session knows it (``monitoring.reader_row``), any
    other is asked for it once, in one query instead of two.
    """
    if not user.is_authenticated or not user.is_active:
        return False
    if user.is_superuser:
        return True
    known = getattr(user, remembered, None)
    if known is None:
        app, codename = permission.split(".")
        known = HELD.row(user_id=user.pk, app=app, codename=codename) is not None
        setattr(user, remembered, known)
    return bool(known)


def _held(user_id: int, app: str, codename: str) -> QuerySet[Permission, Any]:
    rights = Permission.objects.filter(content_type__app_label=app, codename=codename)
    mine = rights.filter(Q(group__user=user_id) | Q(user=user_id))
    return mine.order_by().values_list("pk")[:1]


HELD = Prepared(_held, {"user_id": int, "app": str, "codename": str})


def role(user: Any) -> str:
    """``admin``, ``operator`` or ``viewer``."""
    if user.is_superuser or user.is_staff:
        return "admin"
    return "operator" if may_operate(user) else "viewer"


def actor_of(request: HttpRequest) -> Any:
    """Who asks, as services and the audit name them: nobody without a session comes this far."""
    return request.user
