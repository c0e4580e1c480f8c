"""Where the queue listens: ``REDIS_URL``, else the embedded Valkey of the home folder."""

from __future__ import annotations

from pathlib import Path

from intraskill_web import home as home_folder

PORT_FILE = Path("valkey") / "port"
PASSWORD = "valkey-password"  # the name of the secret, not the secret


def embedded_port(home: Path) -> int | None:
    """The port the embedded Valkey of ``home`` was last given, or None before its first start."""
    try:
        return int((home / PORT_FILE).read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return None


def redis_url(configured: str, home: Path) -> str:
    """The queue's address. Of an embedded Valkey that never ran: port 1, where nobody answers."""
    if configured:
        return configured
    return f"redis://:{home_folder.secret(home, PASSWORD)}@127.0.0.1:{embedded_port(home) or 1}/0"
