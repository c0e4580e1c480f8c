"""Definitions of every number on screen, from ``docs/metrics/<language>.yaml``.

An entry has ``title``, ``text``, ``denominator``, ``source`` and, where people misread the number,
``misread``. The ``?`` beside a number opens it. English and Chinese hold the same keys (tested).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings
from django.utils.translation import get_language

FILES = {"en": "en.yaml", "zh-hans": "zh.yaml"}


@dataclass(frozen=True, slots=True)
class Definition:
    """What a number means."""

    key: str
    title: str
    text: str
    denominator: str = ""
    source: str = ""
    misread: str = ""


@lru_cache(maxsize=4)
def load(path: Path) -> dict[str, Definition]:
    """All definitions of one file, in file order."""
    raw: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {key: Definition(key=key, **entry) for key, entry in raw.items()}


def definitions(language: str | None = None) -> dict[str, Definition]:
    """The definitions in ``language`` (default: the reader's), else in English."""
    name = FILES.get(language or get_language() or "en", "en.yaml")
    return load(Path(settings.BASE_DIR) / "docs" / "metrics" / name)
