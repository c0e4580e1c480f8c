"""How an experiment's rounds run on slime: the launch file, and the server of validation and gate.

What a launch file says of steps, groups, optimiser and sampling becomes part of the experiment when
it is made (``experiment.py``); everything else is taken from the file as it was then.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

from pydantic import Field

from trainer.config_base import Config, ConfigPath, Count, Positive


class ServingSettings(Config):
    """The SGLang server that plays evaluations and gates with an export (training.md §6.4.4)."""

    served_name: str
    port: Annotated[int, Field(ge=1, le=65535)] = 30000
    tp_size: Count = 1
    dp_size: Count = 1
    mem_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.7
    tool_call_parser: str = "qwen3_coder"
    reasoning_parser: str | None = "qwen3"
    extra: tuple[str, ...] = ()
    python: str = sys.executable
    concurrency: Annotated[int, Field(ge=1, le=256)] = 32
    timeout_seconds: Positive = 180.0
    extra_body: dict[str, Any] = {"enable_thinking": True}

    @property
    def base_url(self) -> str:
        """Where its API answers."""
        return f"http://127.0.0.1:{self.port}/v1"


class SlimeSettings(Config):
    """``engine: slime`` of an experiment. ``launch`` is a file as ``configs/slime/train.yaml``."""

    launch: ConfigPath
    serving: ServingSettings
