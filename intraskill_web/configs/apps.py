from __future__ import annotations

from django.apps import AppConfig


class ConfigsConfig(AppConfig):
    name = "intraskill_web.configs"
