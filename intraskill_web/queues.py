"""Where the queue listens: ``REDIS_URL``, else the embedded Valkey of the home folder."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from intraskill_web import home as home_folder

PORT_FILE = Path("valkey") / "port"
SCHEMES = ("redis", "rediss", "unix")
PASSWORD = "valkey-password"  # the name of the secret, not the secret


def embedded_port(home: Path) -> int | None:
    """The port the embedded Valkey of ``home`` was last given, or None before its first start."""
    try:
        return int((home / PORT_FILE).read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return None


def redis_url(configured: str, home: Path) -> str:
    """The queue's address. Of an embedded Valkey that never ran: port 1, where nobody answers.

    Raises ImproperlyConfigured for an address of another kind of server.
    """
    if configured:
        scheme = urlsplit(configured).scheme
        if scheme not in SCHEMES:
            raise ImproperlyConfigured(
                f"REDIS_URL must begin with redis://, rediss:// or unix:// (found {scheme!r})"
            )
        return configured
    return f"redis://:{home_folder.secret(home, PASSWORD)}@127.0.0.1:{embedded_port(home) or 1}/0"
