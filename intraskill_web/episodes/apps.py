from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class EpisodesConfig(AppConfig):
    name = "intraskill_web.episodes"
    verbose_name = _("Episodes")

    def ready(self) -> None:
        """Models can be imported from here on."""
        from intraskill_web.episodes.emptied import forget_terms

        post_migrate.connect(forget_terms, sender=self)
