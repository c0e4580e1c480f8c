"""HTTP in front of ``Service``: routes, tokens, status codes, metrics."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from typing import Any

import orjson
from aiohttp import web

from trainer.shop.service.errors import (
    ERROR_BETWEEN_WORKERS,
    LEGACY_STATUS,
    STATUS,
    ServiceError,
)
from trainer.shop.service.guard import Connections, Handler, refusal
from trainer.shop.service.metrics import CONTENT_TYPE, Sample, exposition
from trainer.shop.service.peers import Peers
from trainer.shop.service.requests import ACTIONS, read_body
from trainer.shop.service.service import Service

PATH = "/api/shop_agent"
LARGEST_BODY = 1 << 20
BODY_SECONDS = 30.0


class Endpoint:
    """The handlers of one worker. ``peers`` knows the workers that own the other slots."""

    def __init__(self, service: Service, peers: Peers) -> None:
        self.service = service
        self.peers = peers
        self.connections = Connections()

    def application(self) -> web.Application:
        """The public application."""
        application = web.Application(
            client_max_size=LARGEST_BODY, middlewares=[self.connections.middleware, self._typed]
        )
        application.add_routes(
            [
                web.post(PATH, self.shop_agent),
                web.get("/healthz", self.healthz),
                web.get("/metrics", self.prometheus),
            ]
        )
        return application

    @web.middleware
    async def _typed(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """What the router refuses has the shape of every other refusal."""
        try:
            return await handler(request)
        except web.HTTPException as error:
            refused = refusal(error)
            headers = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
            return _json(refused.body(), self._status(refused), headers)

    async def shop_agent(self, request: web.Request) -> web.Response:
        """POST /api/shop_agent."""
        started = time.perf_counter()
        action = "unknown"
        headers: dict[str, str] = {}
        try:
            admin = self._authorise(request)
            wanted = read_body(await _body_of(request))
            action = wanted["action"]
            result = {"result": await self.peers.route(self.service, wanted, admin=admin)}
            status = 200
        except ServiceError as error:
            result, status = error.body(), self._status(error)
            if error.retry_after is not None:
                headers["Retry-After"] = str(error.retry_after)
        self.service.metrics.observe(
            action if action in ACTIONS else "unknown", status, time.perf_counter() - started
        )
        return _json(result, status, headers)

    def _status(self, error: ServiceError) -> int:
        table = LEGACY_STATUS if self.service.settings.legacy_statuses else STATUS
        return table[error.code]

    def _authorise(self, request: web.Request) -> bool:
        """Whether the caller is an administrator. Raises ServiceError for a wrong token."""
        settings = self.service.settings
        sent = request.headers.get("Authorization", "").removeprefix("Bearer ")
        given = sent.encode("utf-8", "surrogateescape")
        if settings.admin_token and secrets.compare_digest(given, settings.admin_token.encode()):
            return True
        if settings.token and not secrets.compare_digest(given, settings.token.encode()):
            raise ServiceError("unauthorised", "a valid bearer token is needed")
        return False

    async def healthz(self, request: web.Request) -> web.Response:
        """GET /healthz: open to everybody, tells nothing private."""
        return _json(await self.peers.health(self.service), 200, {})

    async def prometheus(self, request: web.Request) -> web.Response:
        """GET /metrics."""
        try:
            self._authorise(request)
        except ServiceError as error:
            return _json(error.body(), self._status(error), {})
        samples = self._own_samples() + await self.peers.samples()
        return web.Response(body=exposition(samples), headers={"Content-Type": CONTENT_TYPE})

    def internal_application(self) -> web.Application:
        """What workers ask each other over their private sockets."""
        application = web.Application(client_max_size=LARGEST_BODY)
        application.add_routes(
            [
                web.post("/handle", self._internal_handle),
                web.get("/health", self._internal_health),
                web.get("/metrics", self._internal_metrics),
            ]
        )
        return application

    async def _internal_handle(self, request: web.Request) -> web.Response:
        message = await request.json()
        try:
            reply = await self.peers.local(
                self.service, message["request"], admin=message["admin"], wait=message["wait"]
            )
        except ServiceError as error:
            refusal = {
                "code": error.code,
                "message": error.message,
                "retry_after": error.retry_after,
            }
            return _json(refusal, ERROR_BETWEEN_WORKERS, {})
        return _json(reply, 200, {})

    async def _internal_health(self, request: web.Request) -> web.Response:
        return _json(self.service.health(), 200, {})

    async def _internal_metrics(self, request: web.Request) -> web.Response:
        return _json(self._own_samples(), 200, {})

    def _own_samples(self) -> list[Sample]:
        worker = {"worker": str(self.peers.worker)}
        return [(name, {**worker, **own}, value) for name, own, value in self.service.samples()]


async def _body_of(request: web.Request) -> bytes:
    """The request's body. Raises ServiceError when it is too large, too slow or unreadable."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await request.read()
    except TimeoutError as error:
        raise ServiceError(
            "request_timeout", f"the body did not arrive within {BODY_SECONDS:g} s"
        ) from error
    except web.HTTPRequestEntityTooLarge as error:
        raise ServiceError("too_large", f"a request has at most {LARGEST_BODY} bytes") from error
    except web.RequestPayloadError as error:
        raise ServiceError("bad_request", f"the body cannot be read: {error}") from error


def _json(value: Any, status: int, headers: dict[str, str]) -> web.Response:
    try:
        body = orjson.dumps(value)
    except TypeError:  # half of a surrogate pair, or a number of more than 64 bits
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        body = text.encode("utf-8", "replace")
    return web.Response(
        body=body, status=status, headers=headers, content_type="application/json", charset="utf-8"
    )
