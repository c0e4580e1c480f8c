from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class MonitoringConfig(AppConfig):
    name = "intraskill_web.monitoring"
    verbose_name = _("Monitoring")
