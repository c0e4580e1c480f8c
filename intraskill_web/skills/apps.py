from __future__ import annotations

from django.apps import AppConfig


class SkillsConfig(AppConfig):
    name = "intraskill_web.skills"
