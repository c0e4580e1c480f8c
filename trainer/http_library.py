"""The HTTP library: ``httpx`` where slime brings it, else its successor ``httpx2``."""

from __future__ import annotations

import importlib
import logging
from functools import lru_cache
from typing import Any

from trainer.errors import InputError


@lru_cache(maxsize=1)
def http() -> Any:
    """The library's module. Raises InputError when neither is installed."""
    for name in ("httpx", "httpx2"):
        try:
            library = importlib.import_module(name)
        except ImportError:
            continue
        logging.getLogger(name).setLevel(logging.WARNING)  # a line per request drowns the job's log
        return library
    raise InputError("no HTTP library is installed", remedy="pip install httpx")
