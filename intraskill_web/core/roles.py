"""Three roles: a viewer looks, an operator starts and stops, an admin does everything.

Roles are groups, made after every migration; membership is given in the admin pages. Anyone who can
log in may look; ``experiments.operate`` is asked for by every action that changes something, and
``episodes.see_private_goal`` for what the policy was never shown.
"""

from __future__ import annotations

from typing import Any

OPERATE = "experiments.operate"
SEE_GOAL = "episodes.see_private_goal"
ROLES: dict[str, tuple[str, ...] | None] = {
    "viewer": (),
    "operator": (OPERATE, SEE_GOAL),
    "admin": None,
}


def ensure_roles(**_signal: Any) -> None:
    """Make the groups and give each its permissions (``None``: all)."""
    from django.contrib.auth.models import Group, Permission

    known = {
        f"{item.content_type.app_label}.{item.codename}": item
        for item in Permission.objects.select_related("content_type")
    }
    for name, wanted in ROLES.items():
        group, _created = Group.objects.get_or_create(name=name)
        chosen = known.values() if wanted is None else [known[p] for p in wanted if p in known]
        group.permissions.set(chosen)
