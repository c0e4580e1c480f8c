from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _
from django.db.models.signals import post_migrate

from intraskill_web.core.roles import ensure_roles


class CoreConfig(AppConfig):
    name = "intraskill_web.core"
    verbose_name = _("Audit trail")

    def ready(self) -> None:
        post_migrate.connect(ensure_roles, dispatch_uid="intraskill.roles")
