"""What tells one environment from another, and the refusal to mix two.

``World.identity()`` is the whole of it. The published service tells two versions of it and no
catalogue, so only what both sides tell is compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.errors import InputError

#: two environments that differ in one of these are not the same
IDENTITY = (
    "profile",
    "environment_version",
    "observation_version",
    "reward_version",
    "search_version",
    "catalogue_sha256",
)
#: what the published health reply tells
_PUBLISHED = ("environment_version", "observation_version", "primary_reward")


class OtherEnvironment(InputError):
    """A service is not the environment that its user wants: a wrong set-up, not bad luck."""


def served_identity(health: Mapping[str, Any]) -> dict[str, Any]:
    """Whose environment a health reply is of: whole from our service, in part from the published
    one."""
    told = health.get("environment")
    if isinstance(told, Mapping):
        return dict(told)
    return {name: health[name] for name in _PUBLISHED if name in health}


def check_served(url: str, served: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise OtherEnvironment unless ``served`` is what is ``wanted``, as far as both tell."""
    for name in IDENTITY:
        if name in served and name in wanted and served[name] != wanted[name]:
            raise OtherEnvironment(
                f"the service has another {name}; {wanted[name]!r} is wanted",
                field=f"{url} {name}",
                value=served[name],
                remedy="Serve the same profile and catalogue, or change the configuration",
            )
