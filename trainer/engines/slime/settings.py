"""The ``shopsim_*`` keys of the hooks, read from slime's arguments or from their YAML file.

slime sets every key of ``--custom-config-path`` as an attribute of its arguments without a check,
so types and ranges are checked here, once per process. The keys beyond the published ones are the
explicit settings of training.md §9. Specification: training.md §4.2.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, StrictBool, StrictInt, model_validator

from trainer.config import Config
from trainer.config_files import parse_config, read_yaml
from trainer.errors import InputError

PREFIX = "shopsim_"


class HookSettings(Config):
    """What the hooks do. Paths are as written; ``resolve`` anchors them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    skillbank_path: Path = Field(description="bank the curriculum was built from")
    curriculum_path: Path = Field(description="frozen curriculum of the round")
    training_output_dir: Path = Field(
        Path("runs/slime-training"), description="traces and triage go to <dir>/<round>/group-…"
    )
    system_prompt_file: Path | None = Field(None, description="null: the built-in prompt")
    environment_base_url: str = Field("http://127.0.0.1:5700", description="shop service")
    environment_profile: Literal["compat", "standard"] | None = Field(
        None, description="profile the service must have; null: all episodes that of the first"
    )
    environment_catalogue_sha256: str | None = Field(
        None,
        pattern="^[0-9a-f]{64}$",
        description="catalogue the service must have; null: all episodes that of the first",
    )
    environment_token_env: str | None = Field(
        None,
        pattern="^[A-Za-z_][A-Za-z0-9_]*$",
        description="variable that holds the service's bearer token; null: it asks for none",
    )
    environment_timeout: float = Field(30.0, gt=0, description="seconds per call of the service")
    environment_persona: StrictBool = Field(True, description="show the persona")
    environment_trust_env: Literal[False] = Field(
        False, description="proxies of the environment are never used"
    )
    episode_concurrency: StrictInt = Field(16, ge=1, description="episodes at once per worker")
    max_steps: StrictInt = Field(30, ge=1, description="model turns of an episode")
    full_skill_retry: StrictBool = Field(True, description="diagnose an all-wrong group")
    max_consecutive_failed_groups: StrictInt = Field(8, ge=1, description="then the job ends")
    tool_parser: str | None = Field(None, description="null: slime's, then qwen3_coder")
    reasoning_parser: str | None = Field(None, description="null: slime's, then qwen3")

    environment: Literal["http", "in_process"] = Field(
        "http", description="a shop service, or sessions inside the worker"
    )
    world_profile: str = Field("mini", description="profile of in-process sessions")
    world_catalogue: Path | None = Field(None, description="catalogue of in-process sessions")
    sample_layout: Literal["turn", "episode"] = Field(
        "turn",
        description="turn: the prompt is rendered anew each turn, one Sample per model turn; "
        "episode: an append-only prompt with fixed tools, one contiguous Sample per episode",
    )
    echo_reasoning: StrictBool = Field(
        False, description="keep earlier reasoning in later prompts, as the published hooks did"
    )
    recorder: Literal["auto", "slime", "own"] = Field(
        "auto", description="slime's trajectory manager where this slime has one, or our own"
    )
    failure_window: StrictInt = Field(64, ge=1, description="groups over which losses are rated")
    max_failed_share: float = Field(
        1.0, gt=0, le=1, description="share of the window that may be lost; 1 counts only runs"
    )
    record_tokens: StrictBool = Field(False, description="write token ids into traces")
    round_dir: Path | None = Field(
        None, description="exact folder of the round; null: <training_output_dir>/<round>"
    )
    round_steps: StrictInt | None = Field(
        None, ge=1, description="steps of the round, for its progress file; null: none is written"
    )

    @model_validator(mode="after")
    def _contiguous_prompts_are_built_here(self) -> HookSettings:
        if self.sample_layout == "episode" and self.recorder == "slime":
            raise ValueError("sample_layout 'episode' is recorded by 'own' (or 'auto')")
        return self

    def environment_token(self, environ: Mapping[str, str] = os.environ) -> str | None:
        """The token of the shop service, which no file holds. Raises InputError when it is unset.

        Its variable's name is all that errors, plans and traces show.
        """
        name = self.environment_token_env
        if name is None:
            return None
        token = environ.get(name)
        if not token:
            raise InputError(
                "the environment variable is empty or not set",
                field=published_name("environment_token_env"),
                value=name,
                remedy="Export the service's token under this name, or leave the key out",
            )
        return token

    def resolve(self, path: Path) -> Path:
        """``path`` below the project root that the launcher named, else the current folder."""
        root = os.environ.get("SHOPSIMRL_PROJECT_ROOT")
        return path if path.is_absolute() else Path(root or Path.cwd()) / path


def published_name(field: str) -> str:
    """The YAML key of a field."""
    return PREFIX + field


def parse_hook_settings(values: Mapping[str, Any], *, file: Path) -> HookSettings:
    """Check a mapping of ``shopsim_*`` keys. Raises InputError naming the key."""
    document = {str(key): value for key, value in values.items() if str(key).startswith(PREFIX)}
    own = {key.removeprefix(PREFIX): value for key, value in document.items()}
    try:
        return parse_config(own, HookSettings, file=file)
    except InputError as error:
        if error.field is None:
            raise
        raise InputError(
            error.reason,
            file=error.file,
            field=published_name(error.field),
            value=error.value,
            remedy=error.remedy,
        ) from error


def read_hook_settings(path: Path) -> HookSettings:
    """The settings of a ``--custom-config-path`` file; raises InputError naming file and key."""
    return parse_hook_settings(read_yaml(path), file=path)


def hook_settings(args: Any) -> HookSettings:
    """The settings among slime's arguments, checked once per distinct set of values."""
    values = {key: value for key, value in vars(args).items() if key.startswith(PREFIX)}
    return _checked_once(json.dumps(values, sort_keys=True, default=str))


@lru_cache(maxsize=64)
def _checked_once(values: str) -> HookSettings:
    return parse_hook_settings(json.loads(values), file=Path("slime arguments"))
