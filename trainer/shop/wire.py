"""JSON over one kept connection to a service: what ``client.py`` speaks its protocol through."""

from __future__ import annotations

import http.client
import json
import select
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from trainer.errors import InputError


class ShopServiceError(RuntimeError):
    """The service could not be reached, refused, or answered nonsense: a technical failure.

    ``status`` is the HTTP status, if any; ``code`` our service's error code, or empty.
    """

    def __init__(self, message: str, *, status: int | None = None, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Wire:
    """One connection, opened when it is needed. Proxies of the environment are ignored."""

    def __init__(self, base_url: str, *, timeout: float, token: str | None) -> None:
        """``timeout``: seconds to connect. Raises InputError for what is no address."""
        self._address = urlsplit(base_url)
        try:
            self._port = self._address.port
        except ValueError:
            self._port = -1
        known = self._address.scheme in ("http", "https")
        if not known or not self._address.hostname or self._port == -1:
            raise InputError(
                "must be an http or https address",
                field="base_url",
                value=base_url,
                remedy="Write it as http://host:5700",
            )
        self._timeout = timeout
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._connection: http.client.HTTPConnection | None = None

    @property
    def url(self) -> str:
        """Where the service is."""
        return self._address.geturl()

    def exchange(
        self, method: str, path: str, body: object, *, timeout: float | None
    ) -> tuple[int, Any, float]:
        """(status, decoded JSON, seconds of Retry-After). Sent once; ``timeout`` is for the reply.

        Raises ShopServiceError when no JSON came back.
        """
        data = None if body is None else json.dumps(body).encode()
        try:
            connection = self._connect(timeout)
            connection.request(method, self._address.path.rstrip("/") + path, data, self._headers)
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise ShopServiceError(f"{self._address.netloc}: {error!r}") from error
        try:
            decoded = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise ShopServiceError(
                f"{self._address.netloc} did not answer JSON", status=response.status
            ) from error
        return response.status, decoded, _seconds(response.getheader("Retry-After"))

    def _connect(self, timeout: float | None) -> http.client.HTTPConnection:
        """An open connection. One that the service has closed meanwhile is never used: what is
        sent on it would be lost, and the published protocol forbids to send it again."""
        if self._connection is None:
            secure = self._address.scheme == "https"
            kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
            self._connection = kind(self._address.hostname or "", self._port, timeout=self._timeout)
        connection = self._connection
        if connection.sock is not None and _is_dropped(connection.sock):
            connection.close()
        if connection.sock is None:
            connection.connect()
        connection.sock.settimeout(timeout)
        return connection

    def close(self) -> None:
        """Disconnect; the next exchange connects again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def result_of(status: int, answer: object) -> dict[str, Any]:
    """The ``result`` object of a good answer. Raises ShopServiceError for any other."""
    result = answer.get("result") if isinstance(answer, Mapping) else None
    if not isinstance(result, dict):
        raise ShopServiceError("the answer has no result object", status=status)
    if "error" in result:
        raise ShopServiceError(
            str(result["error"]), status=status, code=str(result.get("code", ""))
        )
    if not 200 <= status < 300:
        raise ShopServiceError(f"HTTP status {status}", status=status)
    return result


def _is_dropped(connected: socket.socket) -> bool:
    """Whether an idle connection has something to read: then it is the other side's end."""
    poll = select.poll()
    poll.register(connected, select.POLLIN)
    return bool(poll.poll(0))


def _seconds(text: str | None) -> float:
    return float(text) if text is not None and text.isdigit() else 1.0
