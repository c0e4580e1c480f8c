from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class GatesConfig(AppConfig):
    name = "intraskill_web.gates"
    verbose_name = _("Gates")
