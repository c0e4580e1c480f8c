"""A client of the published wire protocol, for the published service and ours (environment.md
§5.6).

One client owns at most one lease. Towards the published service nothing is ever sent twice,
because a step that was lost may have been carried out. Towards our service requests are numbered,
so lost replies are asked for again and a full pool is waited for."""

from __future__ import annotations

import http.client
import json
import secrets
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from trainer.errors import InputError

PATH = "/api/shop_agent"

Reply = dict[str, Any]


class ShopServiceError(RuntimeError):
    """The service could not be reached, refused, or answered nonsense: a technical failure.

    ``status`` is the HTTP status, if any; ``code`` our service's error code, or empty.
    """

    def __init__(self, message: str, *, status: int | None = None, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class ShopClient:
    """Drives one episode at a time. Not shared between threads."""

    def __init__(
        self,
        base_url: str,
        *,
        persona: bool = True,
        interaction_mode: str = "single_turn",
        timeout: float = 30.0,
        token: str | None = None,
        owner: str = "",
        attempts: int = 4,
        slot_wait: float = 600.0,
    ) -> None:
        """``timeout``: seconds for a connection and for a reply; a reset's reply may take any time.

        ``attempts`` and ``slot_wait`` (seconds to wait for a free slot) only count towards a
        service that numbers its requests. Proxies of the environment are ignored."""
        address = urlsplit(base_url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise InputError("must be an http or https address", field="base_url", value=base_url)
        self._address = address
        self._persona = persona
        self._mode = interaction_mode
        self._timeout = timeout
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._owner = owner
        self._attempts = attempts
        self._slot_wait = slot_wait
        self._connection: http.client.HTTPConnection | None = None
        self._numbered: bool | None = None
        self._lease: dict[str, Any] | None = None
        self._sequence = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- the protocol

    def health(self) -> Reply:
        """The service's health document."""
        status, health, _ = self._exchange("GET", "/healthz", None, self._timeout)
        if status != 200 or not isinstance(health, dict):
            raise ShopServiceError("the service is not healthy", status=status)
        return health

    def require(self, identity: Mapping[str, Any]) -> None:
        """Raise InputError unless the service is of this ``World.identity()``, as far as told."""
        health = self.health()
        served = health.get("environment") or health
        for name in ("profile", "environment_version", "observation_version", "catalogue_sha256"):
            if name in served and served[name] != identity[name]:
                raise InputError(
                    f"the service has another {name}; {identity[name]!r} is wanted",
                    field=f"{self._address.geturl()} {name}",
                    value=served[name],
                    remedy="Serve the same profile and catalogue, or change the configuration",
                )

    def reset(self, task_id: int) -> Reply:
        """Begin an episode. The reply has no private goal: it is never asked for."""
        if self._lease is not None:
            raise ShopServiceError("this client still holds a lease; release it first")
        if self._numbered is None:
            self._numbered = "lease_ttl_seconds" in self.health()
        request = {
            "action": "reset",
            "idx": task_id,
            "if_persona": self._persona,
            "include_private_goal": False,
            "interaction_mode": self._mode,
        }
        if self._numbered:
            request["idempotency_key"] = secrets.token_hex(16)
            request["owner"] = self._owner
        reply = self._call(request, timeout=None)
        _check_page(reply)
        if not isinstance(reply.get("task_instruction"), str):
            raise ShopServiceError("the reply to reset has no task_instruction")
        self._lease = {"env_idx": reply["env_idx"], "lease_id": reply["lease_id"]}
        self._sequence = 0
        return reply

    def step(self, action: str) -> Reply:
        """Carry out an action text such as ``search[…]``."""
        reply = self._call({"action": "interact", "response": action, **self._next()})
        _check_page(reply)
        return reply

    def terminate(self, reason: str) -> Reply:
        """End the episode with zero score."""
        reply = self._call({"action": "terminate", "termination_reason": reason, **self._next()})
        _check_page(reply)
        if reply.get("termination_reason") != reason:
            raise ShopServiceError(
                f"asked to end with {reason!r}, the service says "
                f"{reply.get('termination_reason')!r}"
            )
        return reply

    def release(self) -> None:
        """Give the slot back. The lease is forgotten even when the call fails."""
        lease, self._lease = self._lease, None
        if lease is not None:
            self._call({"action": "release_one", **lease})

    def close(self) -> None:
        """Release and disconnect."""
        try:
            self.release()
        finally:
            self._disconnect()

    def _next(self) -> dict[str, Any]:
        if self._lease is None:
            raise ShopServiceError("no episode: call reset first")
        self._sequence += 1
        numbered = {"sequence": self._sequence} if self._numbered else {}
        return {**self._lease, **numbered}

    # --- the wire

    def _call(self, request: Mapping[str, Any], *, timeout: float | None = -1.0) -> Reply:
        timeout = self._timeout if timeout == -1.0 else timeout
        attempts = self._attempts if self._numbered else 1
        give_up = time.monotonic() + self._slot_wait
        failures = 0
        while True:
            try:
                status, answer, retry_after = self._exchange("POST", PATH, request, timeout)
            except ShopServiceError:
                failures += 1
                if failures >= attempts:
                    raise
                time.sleep(min(0.1 * 2**failures, 2.0))
                continue
            if status == 429 and self._numbered and time.monotonic() + retry_after < give_up:
                time.sleep(retry_after)
                continue
            return _result(status, answer)

    def _exchange(
        self, method: str, path: str, body: object, timeout: float | None
    ) -> tuple[int, Any, float]:
        """(status, decoded JSON, seconds of Retry-After)."""
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        try:
            connection = self._connect()
            if connection.sock is not None:
                connection.sock.settimeout(timeout)
            connection.request(method, self._address.path.rstrip("/") + path, data, self._headers)
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._disconnect()
            raise ShopServiceError(f"{self._address.netloc}: {error!r}") from error
        try:
            decoded = json.loads(content)
        except ValueError as error:
            raise ShopServiceError(
                "the service did not answer JSON", status=response.status
            ) from error
        return response.status, decoded, _seconds(response.getheader("Retry-After"))

    def _connect(self) -> http.client.HTTPConnection:
        if self._connection is None:
            secure = self._address.scheme == "https"
            kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
            host = self._address.hostname or ""
            self._connection = kind(host, self._address.port, timeout=self._timeout)
            self._connection.connect()
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _result(status: int, answer: object) -> Reply:
    """The ``result`` object of a good answer. Raises ShopServiceError for any other."""
    result = answer.get("result") if isinstance(answer, dict) else None
    if not isinstance(result, dict):
        raise ShopServiceError("the answer has no result object", status=status)
    if "error" in result:
        raise ShopServiceError(
            str(result["error"]), status=status, code=str(result.get("code", ""))
        )
    if not 200 <= status < 300:
        raise ShopServiceError(f"HTTP status {status}", status=status)
    return result


def _check_page(reply: Mapping[str, Any]) -> None:
    state = reply.get("observation_state")
    if not isinstance(reply.get("observation"), str) or not isinstance(state, dict):
        raise ShopServiceError("the reply has no observation")
    if not isinstance(state.get("observation_version"), str):
        raise ShopServiceError("the observation names no version")


def _seconds(text: str | None) -> float:
    return float(text) if text is not None and text.isdigit() else 1.0
