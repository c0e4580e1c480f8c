from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ConfigsConfig(AppConfig):
    name = "intraskill_web.configs"
    verbose_name = _("Configurations")
