"""Signed messages as the Standard Webhooks specification has them (standardwebhooks.com, 1.0).

A receiver takes the headers ``webhook-id``, ``webhook-timestamp`` and ``webhook-signature`` and
computes HMAC-SHA256 over ``id.timestamp.body`` with the secret behind ``whsec_``, in base64. An id
stays the same when a message is tried again, so that a receiver can tell a repetition.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

PREFIX = "whsec_"
SECRET_BYTES = 24


def new_secret() -> str:
    """A random secret in the form that libraries for the specification read."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def headers(secret: str, key: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The three headers of one message; ``timestamp`` in whole seconds since 1970."""
    return {
        "webhook-id": key,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{signature(secret, key, timestamp, body)}",
    }


def signature(secret: str, key: str, timestamp: int, body: bytes) -> str:
    """HMAC-SHA256 of ``id.timestamp.body``, in base64. Raises ValueError for a malformed secret."""
    material = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    signed = f"{key}.{timestamp}.".encode() + body
    return base64.b64encode(hmac.new(material, signed, hashlib.sha256).digest()).decode()


def verify(secret: str, key: str, timestamp: int, body: bytes, header: str) -> bool:
    """Whether ``header`` holds a signature of this message: what a receiver does."""
    wanted = f"v1,{signature(secret, key, timestamp, body)}"
    return any(hmac.compare_digest(wanted, given) for given in header.split(" "))
