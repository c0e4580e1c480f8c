from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate

from intraskill_web.core.roles import ensure_roles


class CoreConfig(AppConfig):
    name = "intraskill_web.core"

    def ready(self) -> None:
        post_migrate.connect(ensure_roles, dispatch_uid="intraskill.roles")
