"""Finding a port that is free, the wanted one first."""

from __future__ import annotations

import socket

TRIES = 50


def free_port(host: str, wanted: int) -> int:
    """``wanted`` if it is free, else the next free one; 0 asks the system for any.

    Raises OSError when none of the next fifty is free.
    """
    if wanted == 0:
        return _bind(host, 0)
    for port in range(wanted, min(wanted + TRIES, 65_536)):
        try:
            return _bind(host, port)
        except OSError:
            continue
    raise OSError(f"no port from {wanted} to {wanted + TRIES - 1} is free on {host}")


def _bind(host: str, port: int) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        return int(probe.getsockname()[1])
