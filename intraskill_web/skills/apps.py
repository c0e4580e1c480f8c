from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SkillsConfig(AppConfig):
    name = "intraskill_web.skills"
    verbose_name = _("Skills")
