"""Where the model is served and how it is asked. Specification: environment.md §6.2, §6.7."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from trainer.config_base import Config, Positive


class EndpointSettings(Config):
    """An OpenAI-compatible server. The key stands in ``api_key_env``, never in a file.

    ``model`` is the name the server knows; ``checkpoint_id`` names the weights in plans when
    ``policy.checkpoint`` is no export whose hash could.
    """

    base_url: str
    model: str
    checkpoint_id: str | None = None
    api_key_env: str | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    tool_choice: Literal["auto", "required"] = "auto"
    send_seed: bool = False
    extra_body: dict[str, Any] = {}
    concurrency: Annotated[int, Field(ge=1, le=256)] = 32
    timeout_seconds: Positive = 180.0
    attempts: Annotated[int, Field(ge=1, le=20)] = 3
    backoff_seconds: Positive = 1.0

    @model_validator(mode="after")
    def _names_a_server(self) -> Self:
        """Of the whole section, so that a password in the address is not quoted as its value."""
        try:
            parts = urlsplit(self.base_url)
        except ValueError as error:
            raise ValueError(f"base_url is no address: {error}") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("base_url begins with http:// or https:// and names a host")
        if parts.username is not None or parts.password is not None:
            raise ValueError("base_url holds a password: name its variable in api_key_env instead")
        return self

    def identity(self) -> dict[str, Any]:
        """What decides an answer besides messages, temperature and length; no addresses."""
        return {
            "provider": "openai_compatible_http",
            "model": self.model,
            "top_p": self.top_p,
            "tool_choice": self.tool_choice,
            "send_seed": self.send_seed,
            "extra_body": self.extra_body,
        }
