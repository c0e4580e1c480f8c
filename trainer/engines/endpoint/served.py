"""Whether a server is there and serves the model, asked once before anything is played.

An OpenAI-compatible server answers ``GET /models`` with the names it knows; one that does not offer
the list (404, 405) is believed. The whole question, to the answer's last byte, has ``WAIT_S``
seconds (a resolver that hangs is waited for longer), and no more than ``MOST_BYTES`` of an answer
are read: an address that leads elsewhere, to a stream or a proxy that drips, holds nobody up.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from trainer.engines.endpoint.client import key_header
from trainer.engines.endpoint.settings import EndpointSettings
from trainer.errors import InputError
from trainer.http_library import http

WAIT_S = 10.0
MOST_BYTES = 4 * 2**20  # a list of 10,000 models has about 2 MB
PLAIN = {"Accept-Encoding": "identity"}  # what is packed may be any size
NO_LIST = (404, 405)
LOOK = "look at its log; the address ends where /chat/completions begins"


def check_served(settings: EndpointSettings) -> None:
    """Raise InputError, with address and remedy, for a server that cannot be asked."""
    base = settings.base_url.rstrip("/")
    status, body = _ask(base, key_header(settings))
    if status in (401, 403):
        raise _error(
            f"the server refuses the key (HTTP {status})",
            base,
            "name the environment variable that holds its key in api_key_env",
        )
    if status in NO_LIST:
        return
    if status >= 300:
        raise _error(f"the server answers HTTP {status} to {base}/models", base, LOOK)
    names = _names(body)
    if names and settings.model not in names:
        raise InputError(
            f"is not served at {base}",
            field="endpoint.model",
            value=settings.model,
            remedy=f"served there: {', '.join(names[:20])}",
        )


def _ask(base: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """Status and body of the list of models. Raises InputError."""
    try:
        return asyncio.run(_fetch(f"{base}/models", headers))
    except TimeoutError as error:
        raise _error(
            f"the server has not answered {base}/models whole within {WAIT_S:g} seconds",
            base,
            "look whether it is starting or overloaded, or correct the address",
        ) from error
    except (http().HTTPError, http().InvalidURL) as error:
        raise _error(
            f"the server does not answer ({type(error).__name__}: {error})",
            base,
            "start it, or correct the address",
        ) from error


async def _fetch(url: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """Asynchronous only for its deadline: a timeout of the library is one for each read."""
    told = {**headers, **PLAIN}
    async with (
        asyncio.timeout(WAIT_S),
        http().AsyncClient(timeout=None) as client,
        client.stream("GET", url, headers=told) as reply,
    ):
        body = b""
        if reply.status_code < 300:
            async for part in reply.aiter_raw():
                body += part
                if len(body) > MOST_BYTES:
                    raise _error(
                        f"the answer to {url} is longer than {MOST_BYTES // 2**20} MB: no list "
                        "of models",
                        url.removesuffix("/models"),
                        LOOK,
                    )
        return reply.status_code, body


def _error(reason: str, base: str, remedy: str) -> InputError:
    return InputError(reason, field="endpoint.base_url", value=base, remedy=remedy)


def _names(body: bytes) -> list[str]:
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return []
    models = value.get("data") if isinstance(value, Mapping) else None
    found = models if isinstance(models, list) else []
    return [str(m["id"]) for m in found if isinstance(m, Mapping) and "id" in m]
