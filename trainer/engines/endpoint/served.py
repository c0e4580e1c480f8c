"""Whether a server is there and serves the model, asked once before anything is played.

An OpenAI-compatible server answers ``GET /models`` with the names it knows; one that does not offer
the list (404, 405) is believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.engines.endpoint.client import key_header
from trainer.engines.endpoint.settings import EndpointSettings
from trainer.errors import InputError
from trainer.http_library import http

WAIT_S = 10.0
NO_LIST = (404, 405)


def check_served(settings: EndpointSettings) -> None:
    """Raise InputError, with address and remedy, for a server that cannot be asked."""
    base = settings.base_url.rstrip("/")
    headers = key_header(settings)
    try:
        reply = http().get(f"{base}/models", headers=headers, timeout=WAIT_S)
    except (http().HTTPError, http().InvalidURL) as error:
        raise _error(
            f"the server does not answer ({type(error).__name__}: {error})",
            base,
            "start it, or correct the address",
        ) from error
    if reply.status_code in (401, 403):
        raise _error(
            f"the server refuses the key (HTTP {reply.status_code})",
            base,
            "name the environment variable that holds its key in api_key_env",
        )
    if reply.status_code in NO_LIST:
        return
    if reply.status_code >= 300:
        raise _error(
            f"the server answers HTTP {reply.status_code} to {base}/models",
            base,
            "look at its log; the address ends where /chat/completions begins",
        )
    names = _names(reply)
    if names and settings.model not in names:
        raise InputError(
            f"is not served at {base}",
            field="endpoint.model",
            value=settings.model,
            remedy=f"served there: {', '.join(names[:20])}",
        )


def _error(reason: str, base: str, remedy: str) -> InputError:
    return InputError(reason, field="endpoint.base_url", value=base, remedy=remedy)


def _names(reply: Any) -> list[str]:
    try:
        value = reply.json()
    except ValueError:
        return []
    models = value.get("data") if isinstance(value, Mapping) else None
    found = models if isinstance(models, list) else []
    return [str(m["id"]) for m in found if isinstance(m, Mapping) and "id" in m]
