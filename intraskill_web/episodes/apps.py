from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class EpisodesConfig(AppConfig):
    name = "intraskill_web.episodes"
    verbose_name = _("Episodes")
