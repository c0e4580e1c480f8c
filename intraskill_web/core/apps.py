from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _

from intraskill_web.core.roles import ensure_roles


class CoreConfig(AppConfig):
    name = "intraskill_web.core"
    verbose_name = _("Audit trail")

    def ready(self) -> None:
        from intraskill_web.core.field_names import name_fields

        name_fields()
        post_migrate.connect(ensure_roles, dispatch_uid="intraskill.roles")
