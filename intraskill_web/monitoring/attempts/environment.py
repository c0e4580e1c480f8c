"""The snapshot of what an attempt ran in, flat, with secrets masked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from intraskill_web.core import formats

MASK = "•••"
SECRET_NAME = re.compile(
    r"(?:^|[_\-.])(?:api_?key|key|token|secret|password|passwd|pwd|credentials?|auth|cookie)s?$",
    re.IGNORECASE,
)
IN_ADDRESS = re.compile(r"(?<=://)[^/@\s:]*:[^/@\s]+(?=@)")
LOOKS_SECRET = re.compile(r"\b(?:sk|hf|ghp|gho|glpat|xox[abp]|whsec)[-_][A-Za-z0-9_\-]{12,}")


def flat(environment: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(name, value) in the order they were taken; parts of a part are ``part.name``."""
    return list(_pairs(environment, ""))


def masked(environment: Mapping[str, Any]) -> dict[str, Any]:
    """The same mapping with secrets masked, for JSON."""
    return {
        key: masked(value) if isinstance(value, Mapping) else _value(str(key), value)
        for key, value in environment.items()
    }


def mask(name: str, text: str) -> str:
    """``text`` without what must not be seen: all of a secret's value, passwords in addresses."""
    if SECRET_NAME.search(name):
        return MASK
    return LOOKS_SECRET.sub(MASK, IN_ADDRESS.sub(MASK, text))


def _pairs(environment: Mapping[str, Any], prefix: str) -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    for key, value in environment.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            out += _pairs(value, "" if key == "packages" else f"{name}.")
        elif value is None:
            out.append((name, formats.UNKNOWN))
        elif key.endswith("_bytes") and isinstance(value, int):
            out.append((name.removesuffix("_bytes"), formats.size(value)))
        else:
            out.append((name, mask(str(key), str(value))))
    return out


def _value(key: str, value: Any) -> Any:
    if isinstance(value, str):
        return mask(key, value)
    return MASK if value is not None and SECRET_NAME.search(key) else value
