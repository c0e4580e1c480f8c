"""Typed errors of the service. The body keeps the published shape, ``{"result": {"error": …}}``."""

from __future__ import annotations

from typing import Any, Literal

ErrorCode = Literal[
    "bad_json",
    "bad_request",
    "unknown_action",
    "unknown_task",
    "unauthorised",
    "forbidden",
    "stale_lease",
    "lease_expired",
    "sequence_conflict",
    "key_in_use",
    "episode_over",
    "too_large",
    "not_found",
    "method_not_allowed",
    "request_timeout",
    "no_free_slot",
]

STATUS: dict[ErrorCode, int] = {
    "bad_json": 400,
    "bad_request": 400,
    "unknown_action": 400,
    "unauthorised": 401,
    "forbidden": 403,
    "unknown_task": 404,
    "not_found": 404,
    "method_not_allowed": 405,
    "request_timeout": 408,
    "stale_lease": 409,
    "sequence_conflict": 409,
    "key_in_use": 409,
    "episode_over": 409,
    "lease_expired": 410,
    "too_large": 413,
    "no_free_slot": 429,
}

#: status of a refusal on the private sockets; the public one is decided where the client is
ERROR_BETWEEN_WORKERS = 299

#: what the published service answers (environment.md §5.4)
LEGACY_STATUS: dict[ErrorCode, int] = {
    **STATUS,
    "bad_json": 200,
    "unknown_task": 500,
    "episode_over": 500,
    "lease_expired": 409,
}


class ServiceError(Exception):
    """A refused request. ``retry_after`` in seconds goes into the header of that name."""

    def __init__(self, code: ErrorCode, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.code: ErrorCode = code
        self.message = message
        self.retry_after = retry_after

    def body(self) -> dict[str, Any]:
        return {"result": {"error": self.message, "code": self.code}}
