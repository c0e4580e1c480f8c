"""The home folder: everything of one instance that changes. Two homes never touch each other.

    db.sqlite3   valkey/   runs/<experiment>/   logs/   secrets/ (mode 0700)   static/   host-name

Secrets are made once, at first use, and kept in files that only the owner may read.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import socket
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

FOLDERS = ("valkey", "runs", "logs", "secrets", "static")


def prepare(home: Path) -> None:
    """Make the folders of ``home``; ``secrets/`` is closed to everybody else.

    Raises ImproperlyConfigured where that is not possible.
    """
    try:
        for name in FOLDERS:
            (home / name).mkdir(parents=True, exist_ok=True)
        (home / "secrets").chmod(0o700)
    except OSError as error:
        raise ImproperlyConfigured(
            f"INTRASKILL_HOME cannot be used: {error.strerror} (found {str(home)!r}). "
            "Name a folder that you may write"
        ) from None


def secret(home: Path, name: str, *, nbytes: int = 32) -> str:
    """The secret ``name`` of ``home``, made at random on first use.

    Two processes that ask at once get the same one: whoever links its file first wins.
    """
    return _once(home / "secrets" / name, secrets.token_urlsafe(nbytes))


def host_name(home: Path) -> str:
    """What this machine is called in the rows of this home: its name when the home was first used.

    A laptop changes its host name with the network; its processes are still found under this one.
    """
    return _once(home / "host-name", socket.gethostname())


def _once(path: Path, text: str) -> str:
    """The contents of ``path``, which are ``text`` if nobody wrote it before."""
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
            handle.write(text + "\n")
        with contextlib.suppress(FileExistsError):
            os.link(partial, path)
        partial.unlink()
    return path.read_text(encoding="utf-8").strip()


def short_id(home: Path) -> str:
    """Eight hex digits that tell this home from others on the machine."""
    return hashlib.sha256(str(home).encode()).hexdigest()[:8]
