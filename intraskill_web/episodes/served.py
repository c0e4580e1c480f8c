"""Served models on which episodes can be replayed: ``endpoints.yaml`` of the home.

Whoever owns the home writes it, not whoever fills in a form: a server is asked with a key from this
host's environment.

    servers:
      qwen-iter80:
        endpoint: {base_url: "http://gpu-7:30000/v1", model: iter80, api_key_env: SGLANG_KEY}
        world: {profile: compat, catalogue: data/items.jsonl, splits: data/splits.json}
        max_new_tokens: 2048

``world`` may be left out: then the episode's run must have one whose policy calls functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from django.conf import settings

from trainer.config import WorldConfig
from trainer.config_base import Config, Count, Name, Positive
from trainer.config_files import load_config
from trainer.engines.endpoint.settings import EndpointSettings

FILE = "endpoints.yaml"


class ServedModel(Config):
    """A model behind an OpenAI-compatible server, how it samples, and the shop it is asked in."""

    endpoint: EndpointSettings
    world: WorldConfig | None = None
    temperature: Positive = 1.0
    max_new_tokens: Count = 2048


class ServedModels(Config):
    """The file."""

    servers: dict[Name, ServedModel] = {}


def served_models() -> Mapping[str, ServedModel]:
    """By name; none without the file. Raises InputError that names file, field and remedy."""
    path = Path(settings.INTRASKILL_HOME) / FILE
    return load_config(path, ServedModels).servers if path.is_file() else {}
