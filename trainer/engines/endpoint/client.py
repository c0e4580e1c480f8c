"""Asking an OpenAI-compatible server, again where that is harmless.

Repeated are transport errors and the statuses that mean "later" (environment.md §6.2); a server
that says how long to wait is believed, up to a limit. Everything else fails at once. The key is
read when a request is made and is never part of an error.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping
from typing import Any

from trainer.engines.endpoint.overflow import room_for_an_answer
from trainer.engines.endpoint.settings import EndpointSettings
from trainer.errors import InputError
from trainer.http_library import http

LATER = frozenset({408, 409, 429, 500, 502, 503, 504})
LONGEST_WAIT_S = 30.0


class EndpointError(RuntimeError):
    """The server gave no answer that could be used."""


class ContextOverflow(EndpointError):
    """Prompt and answer do not fit the model's context; ``room`` tokens are left for an answer."""

    def __init__(self, message: str, room: int) -> None:
        super().__init__(message)
        self.room = room


class EndpointClient:
    """Connections to one server; safe to use from several threads."""

    def __init__(self, settings: EndpointSettings) -> None:
        self._settings = settings
        base = settings.base_url.rstrip("/")
        self._http = http().Client(
            base_url=base,
            timeout=settings.timeout_seconds,
            limits=http().Limits(max_connections=settings.concurrency),
            verify=base.startswith("https"),  # reading certificates for nothing takes long
        )

    def complete(self, body: Mapping[str, Any]) -> object:
        """The parsed reply to ``POST /chat/completions``. Raises EndpointError."""
        return self.post("/chat/completions", body)

    def post(self, path: str, body: Mapping[str, Any]) -> object:
        """The parsed reply to one request, None when it is no JSON. Raises EndpointError."""
        for attempt in range(self._settings.attempts):
            problem, wait = "", None
            try:
                reply = self._http.post(path, json=dict(body), headers=key_header(self._settings))
            except http().HTTPError as error:
                problem = f"{type(error).__name__}: {error}"
            else:
                if reply.status_code < 300:
                    return _json(reply)
                problem = f"HTTP {reply.status_code}: {reply.text[:300]}"
                if reply.status_code not in LATER:
                    raise _refusal(problem, reply)
                wait = _retry_after(reply.headers)
            if attempt + 1 < self._settings.attempts:
                time.sleep(self._wait(attempt) if wait is None else wait)
        raise EndpointError(f"{problem} (asked {self._settings.attempts} times)")

    def _wait(self, attempt: int) -> float:
        base: float = self._settings.backoff_seconds * 2.0**attempt
        return min(base, LONGEST_WAIT_S) + random.random() * min(base, 1.0)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


def key_header(settings: EndpointSettings) -> dict[str, str]:
    """The key, read now; nothing where none is named. Raises InputError without it."""
    name = settings.api_key_env
    if name is None:
        return {}
    key = os.environ.get(name)
    if not key:
        raise InputError(
            "the environment variable is not set",
            field="policy.endpoint.api_key_env",
            value=name,
            remedy="export it, or set api_key_env to null",
        )
    return {"Authorization": f"Bearer {key}"}


def _refusal(problem: str, reply: Any) -> EndpointError:
    room = room_for_an_answer(reply.text) if reply.status_code == 400 else None
    return EndpointError(problem) if room is None else ContextOverflow(problem, room)


def _json(reply: Any) -> object:
    try:
        return reply.json()
    except ValueError:
        return None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    try:
        return min(float(headers.get("Retry-After", "")), LONGEST_WAIT_S)
    except ValueError:
        return None
