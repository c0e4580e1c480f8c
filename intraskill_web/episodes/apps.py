from __future__ import annotations

from django.apps import AppConfig


class EpisodesConfig(AppConfig):
    name = "intraskill_web.episodes"
