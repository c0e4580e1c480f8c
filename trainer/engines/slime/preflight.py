"""``check`` of a slime round: everything that can be known before a GPU is asked for.

Arithmetic and files of the launch, the frozen inputs, the hooks, slime's source and flags,
installed versions, disk space. ``ready`` covers these offline checks only (``scope``); the live
mode adds the shop service. Specification: training.md §7, §9.29, §9.30.
"""

from __future__ import annotations

import importlib
import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trainer.engines.slime.checks import Check, failed, passed, report, require, skipped
from trainer.engines.slime.command import HOOKS, model_arguments, model_script, slime_arguments
from trainer.engines.slime.config import SlimeConfig
from trainer.engines.slime.preflight_inputs import Inputs, check_inputs
from trainer.engines.slime.refusals import launch_checks
from trainer.engines.slime.settings import HookSettings, read_hook_settings
from trainer.engines.slime.shops import check_wanted, wanted_identity
from trainer.engines.slime.source import SlimeSource, read_source, unknown_flags
from trainer.engines.slime.variables import load_slime_config
from trainer.engines.slime.versions import router_check, version_checks
from trainer.errors import InputError
from trainer.shop.identity import OtherEnvironment, served_identity

SCOPE = "offline_inputs_only"
#: bf16 weights, fp32 main weights and two Adam moments, in bytes per parameter of a checkpoint
CHECKPOINT_BYTES_PER_PARAMETER = 14
STATES = 2  # the checkpoint that a round begins from, and its own


def check_slime(
    path: Path, environ: Mapping[str, str] | None = None, *, live: bool = False
) -> dict[str, Any]:
    """The preflight document ``{ready, checks[], scope, …}`` of a slime launch file.

    Raises InputError only when the file itself cannot be understood.
    """
    environ = environ or {}
    config, _ = load_slime_config(path, environ)
    checks = launch_checks(config, environ)
    inputs = _inputs(config)
    source = read_source(config.paths.slime) if config.paths.slime.is_dir() else None
    checks += inputs.checks
    checks += _hooks_load()
    checks += _source_checks(config, source)
    checks += version_checks(source)
    checks.append(router_check(config.engines.router_policy))
    checks.append(_disk(config))
    if live:
        checks += live_checks(config, environ)
    return report(checks, scope=SCOPE if not live else "live", **inputs.identity)


def _inputs(config: SlimeConfig) -> Inputs:
    try:
        settings = read_hook_settings(config.paths.hooks)
    except InputError:
        return Inputs()  # the launch checks name this failure
    return check_inputs(
        settings,
        config.paths.project_root,
        tasks=config.paths.tasks,
        split_file=config.paths.split_file,
    )


def _hooks_load() -> Iterator[Check]:
    for flag, path in HOOKS.items():
        module, _, name = path.rpartition(".")
        try:
            found = callable(getattr(importlib.import_module(module), name, None))
        except ImportError as error:
            yield failed(f"hooks.{name}", f"{flag} {path}: {error}", "reinstall this package")
        else:
            yield require(f"hooks.{name}", found, f"{flag} {path}", "no such function")


def _source_checks(config: SlimeConfig, source: SlimeSource | None) -> Iterator[Check]:
    if source is None:
        yield skipped("slime.flags", "no slime checkout", "set SLIME_DIR")
        return
    script = model_script(config)
    try:
        model_args = model_arguments(script)
    except InputError as error:
        yield failed("slime.model_args", str(error), error.remedy or "check slime's commit")
        return
    unknown = unknown_flags(source, slime_arguments(config, model_args), model_args)
    yield require(
        "slime.flags",
        not unknown,
        "every flag is known" if not unknown else f"unknown: {', '.join(unknown)}",
        "use a tested slime commit",
    )
    yield from _features(config, source)


def _features(config: SlimeConfig, source: SlimeSource) -> Iterator[Check]:
    settings = _settings(config)
    if settings is None:
        return
    yield require(
        "slime.rollout_id",
        source.has_rollout_id or settings.sample_layout == "episode",
        "episodes of several Samples count once"
        if source.has_rollout_id
        else f"this slime counts Samples, layout {settings.sample_layout}",
        "set shopsim_sample_layout: episode, or use a slime commit from 2026-05-25 on",
    )
    yield require(
        "slime.trajectory_manager",
        source.has_fork_threshold or settings.recorder != "slime",
        f"recorder {settings.recorder}",
        "set shopsim_recorder: own, or use a slime commit from 2026-06-17 on",
    )


def _settings(config: SlimeConfig) -> HookSettings | None:
    try:
        return read_hook_settings(config.paths.hooks)
    except InputError:
        return None


def _disk(config: SlimeConfig) -> Check:
    """Room for a round's checkpoints, and for the export of every round."""
    index = config.checkpoints.hf_checkpoint / "model.safetensors.index.json"
    if not index.is_file():
        return skipped("host.disk", "size of the start model unknown", "set HF_CHECKPOINT")
    total = json.loads(index.read_text(encoding="utf-8"))["metadata"]["total_size"]
    parameters = total / 2  # bf16
    wanted = int(
        parameters * CHECKPOINT_BYTES_PER_PARAMETER * STATES + total * config.loop.num_rounds
    )
    folder = config.checkpoints.save
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    return require(
        "host.disk",
        free >= wanted,
        f"{free >> 30} GiB free below {folder}, about {wanted >> 30} GiB wanted",
        "free some space",
    )


def _token(settings: HookSettings, environ: Mapping[str, str]) -> Iterator[Check]:
    """Whether the service takes the token that the settings name: health is open to everybody."""
    try:
        token = settings.environment_token(environ)
    except InputError:
        return  # the launch checks name this failure
    url = settings.environment_base_url.rstrip("/") + "/metrics"
    request = urllib.request.Request(url)
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=settings.environment_timeout):
            refused = False
    except urllib.error.HTTPError as error:
        refused = error.code in (401, 403)  # the published service has no such page and no token
    except (urllib.error.URLError, TimeoutError):
        return  # it answered a moment ago; its health says what is wrong
    yield require(
        "live.token",
        not refused,
        f"{url}: {'refused' if refused else 'taken'} {'without' if token is None else 'with'} "
        "a token",
        "put the name of the variable with the service's token into shopsim_environment_token_env",
    )


def live_checks(config: SlimeConfig, environ: Mapping[str, str]) -> Iterator[Check]:
    """What answers right now: the shop service with enough free slots."""
    settings = _settings(config)
    if settings is None or settings.environment == "in_process":
        return
    url = settings.environment_base_url.rstrip("/") + "/healthz"
    try:
        with urllib.request.urlopen(url, timeout=settings.environment_timeout) as reply:
            health = json.loads(reply.read())
    except (urllib.error.URLError, TimeoutError, json.JSONDecodeError) as error:
        yield failed("live.shop", f"{url}: {error}", "start it: python -m trainer shop serve")
        return
    yield require(
        "live.shop", health.get("ready") is True, f"{url}: {health}", "wait until it is ready"
    )
    yield from _token(settings, environ)
    served = served_identity(health)
    told = f"{served.get('profile', served.get('environment_version'))}, catalogue " + str(
        served.get("catalogue_sha256", "not told")
    )
    try:
        check_wanted(url, served, wanted_identity(settings))
    except OtherEnvironment as error:
        yield failed("live.environment", str(error), error.remedy or "serve another one")
    else:
        yield passed("live.environment", told)
    free = health.get("free_slots", 0)
    yield require(
        "live.slots",
        free >= settings.episode_concurrency,
        f"{free} free slots, {settings.episode_concurrency} episodes at once",
        "release stale leases, or raise SHOPSIM_ENV_SLOTS",
    )
