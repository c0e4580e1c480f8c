"""The one way to write the audit trail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from intraskill_web.core.models import AuditEvent

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


def record(
    action: str,
    *,
    actor: AbstractBaseUser | None = None,
    experiment: str = "",
    subject: str = "",
    **detail: Any,
) -> AuditEvent:
    """Note that ``actor`` (None: the system) did ``action``; call inside its transaction."""
    return AuditEvent.objects.create(
        action=action,
        actor_id=actor.pk if actor else None,
        experiment=experiment,
        subject=subject,
        detail=detail,
    )
