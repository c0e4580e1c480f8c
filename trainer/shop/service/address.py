"""Where the service listens: its address, checked, and the sockets bound to it."""

from __future__ import annotations

import contextlib
import ipaddress
import math
import socket
from dataclasses import dataclass

from trainer.errors import InputError
from trainer.shop.service.service import ServiceSettings


@dataclass(frozen=True, slots=True)
class Address:
    """Where the service listens. Port 0 lets the system choose."""

    host: str = "127.0.0.1"
    port: int = 5700
    workers: int = 1


def check_service(address: Address, settings: ServiceSettings) -> None:
    """Refuse settings that cannot work, and to be open to a network without a token."""
    if not 0 <= address.port < 1 << 16:
        raise InputError(
            "a port is a number from 0 to 65535",
            field="--port",
            value=address.port,
            remedy="Choose a free port, or 0 to let the system choose",
        )
    if settings.slots < 1:
        raise InputError(
            "a service needs at least one slot",
            field="--slots",
            value=settings.slots,
            remedy="Choose as many slots as there are episodes at the same time",
        )
    if not 0 < settings.lease_ttl < math.inf:
        raise InputError(
            "must be a positive number of seconds",
            field="--lease-ttl",
            value=settings.lease_ttl,
            remedy="Choose more than the longest pause of a client",
        )
    if not 0 <= settings.reset_wait < math.inf:
        raise InputError(
            "must be a number of seconds, not negative",
            field="--reset-wait",
            value=settings.reset_wait,
            remedy="Choose 0 to answer 429 at once",
        )
    if not is_loopback(address.host) and settings.token is None:
        raise InputError(
            "a service that others can reach needs a token",
            field="--host",
            value=address.host,
            remedy="Name a variable with --token-env, or bind to 127.0.0.1",
        )
    if not 1 <= address.workers <= settings.slots:
        raise InputError(
            f"needs 1 to {settings.slots} workers, one slot for each",
            field="--workers",
            value=address.workers,
            remedy="Choose fewer workers or more --slots",
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach ``host``."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def open_socket(address: Address) -> socket.socket:
    """A bound socket that several workers may share. Raises InputError for a taken port."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        if address.port:
            probe = socket.socket(family, socket.SOCK_STREAM)
            with contextlib.closing(probe):
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((address.host, address.port))
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if address.workers > 1:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind((address.host, address.port))
    except OSError as error:
        bound.close()
        raise InputError(
            f"cannot listen: {error.strerror}",
            field="--port",
            value=f"{address.host}:{address.port}",
            remedy="Choose another port",
        ) from error
    return bound


def open_shared_socket(address: Address) -> socket.socket:
    """One worker's own socket on the common port."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.bind((address.host, address.port))
    return bound
