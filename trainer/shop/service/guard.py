"""What keeps strangers from wearing a worker out: every refusal typed, no connection held for ever,
no log filled by other people's mistakes."""

from __future__ import annotations

import asyncio
import logging
import resource
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage

from trainer.shop.service.errors import ServiceError

#: a connection without a complete request for so long is closed
IDLE_SECONDS = 75.0
_LOG = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Connections:
    """Closes connections on which no request arrives, half of one included.

    aiohttp does so only for connections that carried a whole request before."""

    def __init__(
        self, *, idle: float = IDLE_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._idle = idle
        self._clock = clock
        self._busy: Counter[Any] = Counter()
        self._since: dict[Any, float] = {}

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """A connection is busy while its request is handled."""
        connection = request.protocol
        self._busy[connection] += 1
        try:
            return await handler(request)
        finally:
            self._busy[connection] -= 1
            self._since[connection] = self._clock()

    def close_idle(self, server: web.Server) -> int:
        """Close what was idle for too long; returns how many."""
        now = self._clock()
        self._busy = +self._busy
        self._since = {one: self._since.get(one, now) for one in server.connections}
        idle = [one for one, since in self._since.items() if now - since >= self._idle]
        closed = [one for one in idle if one not in self._busy]
        for connection in closed:
            connection.force_close()
        return len(closed)

    async def sweep(self, server: web.Server, interval: float) -> None:
        """Close idle connections for ever."""
        while True:
            await asyncio.sleep(interval)
            self.close_idle(server)


def refusal(error: web.HTTPException) -> ServiceError:
    """An HTTP refusal of the router as a typed error."""
    if error.status == 404:
        return ServiceError("not_found", "no such path; POST /api/shop_agent, GET /healthz")
    if error.status == 405:
        return ServiceError("method_not_allowed", "POST /api/shop_agent, GET /healthz")
    return ServiceError("bad_request", error.text or error.reason)


class _NoFault(logging.Filter):
    """Leaves out what a client did wrong: it was answered, and is no fault of the service."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, BadHttpMessage | web.RequestPayloadError)


def quiet_logs(loop: asyncio.AbstractEventLoop) -> None:
    """Keep mistakes of clients out of the log, and say once a second at most that no connection
    can be accepted (asyncio says so, with a traceback, a thousand times)."""
    logging.getLogger("aiohttp.server").addFilter(_NoFault())
    told = -float("inf")

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        nonlocal told
        if "out of system resource" not in str(context.get("message")):
            loop.default_exception_handler(context)
        elif loop.time() - told >= 1.0:
            told = loop.time()
            _LOG.error("no connection can be accepted: %s", context.get("exception"))

    loop.set_exception_handler(handle)


def allow_open_files() -> None:
    """Use as many file descriptors as the system permits: each client holds one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
