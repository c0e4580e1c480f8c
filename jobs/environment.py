"""What an attempt ran in, and the environment it gives to its process."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib import metadata
from typing import Any

import psutil
from django.conf import settings

from trainer.cores import cores

PACKAGES = ("torch", "numpy", "django", "rq", "redis", "pydantic")
# of GPU hosts: named where they are installed
OF_GPU_HOSTS = ("ray", "sglang", "slime", "megatron-core", "transformers")
# A stage's process knows the method and no web: it gets no address and no key.
WITHHELD = ("SECRET_KEY", "DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE")


def snapshot() -> dict[str, Any]:
    """Versions, machine and commit, for the attempt's row. Holds no secrets."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "host": settings.INTRASKILL_HOST_NAME,
        "cpus": cores(),
        "memory_bytes": psutil.virtual_memory().total,
        "packages": {
            name: version
            for name in (*PACKAGES, *OF_GPU_HOSTS)
            if (version := version_of(name)) or name in PACKAGES
        },
        "commit": _commit(),
    }


def for_trainer() -> dict[str, str]:
    """The environment of a trainer process: ours without secrets, output unbuffered."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in WITHHELD and not name.endswith("_FILE")
    }
    return {**kept, "PYTHONUNBUFFERED": "1", "PYTHONHASHSEED": "0"}


@cache
def version_of(package: str) -> str | None:
    """Of an installed package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@cache
def _commit() -> str | None:
    try:
        answer = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=settings.BASE_DIR, capture_output=True, text=True, timeout=5, check=False,
        )  # fmt: skip
    except OSError:
        return None
    return answer.stdout.strip() or None
