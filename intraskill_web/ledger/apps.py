from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class LedgerConfig(AppConfig):
    name = "intraskill_web.ledger"
    verbose_name = _("Ledger")
