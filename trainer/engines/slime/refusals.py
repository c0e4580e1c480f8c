"""What must hold before a slime job may start (training.md §6.1, §6.3, §6.4, §9.30).

Arithmetic and files only: no GPU, no network, no import of slime. Each item states the rule with
both numbers and what to change.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from trainer.engines.slime.checkpoints import latest_iteration, num_rollout
from trainer.engines.slime.checks import Check, failed, passed, require, skipped, warning
from trainer.engines.slime.command import model_script
from trainer.engines.slime.config import SlimeConfig
from trainer.errors import InputError

Which = Callable[[str], str | None]


def launch_checks(
    config: SlimeConfig, environ: Mapping[str, str], *, which: Which = shutil.which
) -> list[Check]:
    """Every refusal of the launch. ``which`` finds programs on the path."""
    return [
        *_arithmetic(config),
        *_contract(config),
        *_memory(config),
        *_files(config),
        *_programs(config, which),
        *_round(config, environ),
        *_hooks(config, environ),
        _export(config),
        _secrets(config, environ),
    ]


def _arithmetic(config: SlimeConfig) -> Iterator[Check]:
    cluster, batch = config.cluster, config.batch
    yield require(
        "gpus.trainer_tp",
        cluster.num_gpus % cluster.tp_size == 0,
        f"{cluster.num_gpus} GPUs, trainer tensor parallel size {cluster.tp_size}",
        "choose NUM_GPUS as a multiple of TP_SIZE",
    )
    yield require(
        "gpus.rollout_tp",
        cluster.num_gpus % cluster.rollout_tp_size == 0,
        f"{cluster.num_gpus} GPUs, engine tensor parallel size {cluster.rollout_tp_size}",
        "choose NUM_GPUS as a multiple of ROLLOUT_TP_SIZE",
    )
    yield require(
        "batch.wave",
        batch.wave >= batch.rollout_batch_size,
        f"{batch.wave} groups per wave, {batch.rollout_batch_size} kept",
        "OVER_SAMPLING_BATCH_SIZE must be at least ROLLOUT_BATCH_SIZE",
    )
    yield require(
        "batch.updates",
        batch.episodes_kept % batch.episodes_per_update == 0,
        f"{batch.episodes_kept} episodes kept, {batch.episodes_per_update} per update",
        "GLOBAL_BATCH_SIZE must divide ROLLOUT_BATCH_SIZE * N_SAMPLES_PER_PROMPT: "
        "slime drops the rest",
    )
    yield require(
        "batch.whole_groups",
        batch.episodes_per_update % batch.n_samples_per_prompt == 0,
        f"{batch.episodes_per_update} episodes per update, groups of {batch.n_samples_per_prompt}",
        "GLOBAL_BATCH_SIZE must be a multiple of N_SAMPLES_PER_PROMPT: "
        "a group may not straddle two updates",
    )
    yield require(
        "cluster.nodes",
        cluster.num_nodes == 1 or cluster.address is not None,
        f"{cluster.num_nodes} nodes, cluster {cluster.address or 'started here'}",
        "several nodes need a running cluster: set RAY_ADDRESS",
    )


def _contract(config: SlimeConfig) -> Iterator[Check]:
    sampling, algorithm = config.sampling, config.algorithm
    yield require(
        "sampling.full_distribution",
        sampling.top_p == 1.0 and sampling.top_k == -1,
        f"top_p {sampling.top_p}, top_k {sampling.top_k}",
        "use top_p 1.0 and top_k -1: anything else needs replay data that episodes do not carry",
    )
    yield require(
        "algorithm.one_correction",
        not (algorithm.use_rollout_logprobs and algorithm.use_tis),
        f"use_rollout_logprobs {algorithm.use_rollout_logprobs}, use_tis {algorithm.use_tis}",
        "choose one of the two",
    )


def _memory(config: SlimeConfig) -> Iterator[Check]:
    tokens = config.tokens
    yield require(
        "tokens.bin",
        tokens.max_tokens_per_gpu <= tokens.rollout_max_context_len,
        f"packing bin {tokens.max_tokens_per_gpu}, context cap {tokens.rollout_max_context_len}",
        "a bin above the cap only costs memory: lower MAX_TOKENS_PER_GPU",
    )
    yield require(
        "tokens.response",
        tokens.rollout_max_response_len < tokens.rollout_max_context_len,
        f"turn cap {tokens.rollout_max_response_len}, context cap {tokens.rollout_max_context_len}",
        "ROLLOUT_MAX_RESPONSE_LEN must leave room for a prompt",
    )


def _files(config: SlimeConfig) -> Iterator[Check]:
    paths = config.paths
    wanted: list[tuple[str, Path, str]] = [
        ("files.slime_train", paths.slime / "train.py", "set SLIME_DIR to a slime checkout"),
        ("files.model_args", model_script(config), "set paths.model_script"),
        ("files.megatron", paths.megatron / "megatron", "set MEGATRON_PATH to Megatron-LM"),
        ("files.task_data", paths.tasks, "run: python -m trainer prepare-data"),
        ("files.custom_config", paths.hooks, "set CUSTOM_CONFIG"),
        ("files.hf_checkpoint", config.checkpoints.hf_checkpoint, "set HF_CHECKPOINT"),
        ("files.load", config.checkpoints.load, "set TRAIN_LOAD, or convert the start model"),
    ]
    for name, path, remedy in wanted:
        yield require(name, path.exists(), str(path), remedy)


def _programs(config: SlimeConfig, which: Which) -> Iterator[Check]:
    names = ["python3"] if config.cluster.address else ["ray", "python3"]
    for name in names:
        found = which(name)
        yield require(
            f"programs.{name}",
            found is not None,
            found or "not on PATH",
            "install requirements/gpu.txt and activate its environment",
        )


def _round(config: SlimeConfig, environ: Mapping[str, str]) -> Iterator[Check]:
    loop = config.loop
    visible = [part for part in loop.visible_devices.split(",") if part.strip()]
    if config.cluster.address is None:
        yield require(
            "round.visible_gpus",
            len(visible) >= config.cluster.num_gpus,
            f"{len(visible)} GPUs visible, {config.cluster.num_gpus} wanted",
            "widen CUDA_VISIBLE_DEVICES or lower NUM_GPUS",
        )
    yield require(
        "round.resume_round",
        loop.resume_round < loop.num_rounds,
        f"resume at round {loop.resume_round} of {loop.num_rounds}",
        "RESUME_ROUND counts from 0",
    )
    try:
        saved = latest_iteration(config.checkpoints.save)
    except InputError as error:
        yield failed("round.tracker", str(error), "repair or remove the tracker file")
        return
    if loop.resume_round == 0:
        holds = saved is None or config.checkpoints.load == config.checkpoints.save
        detail = "no checkpoint yet" if saved is None else f"iteration {saved} is already saved"
        yield require(
            "round.fresh",
            holds,
            detail,
            "set RESUME_ROUND to continue, or TRAIN_SAVE to a new folder",
        )
        return
    # a round may save beside the state that it goes on from
    reached = latest_iteration(config.checkpoints.load)
    try:
        before = num_rollout(config, loop.resume_round - 1) - 1
    except InputError as error:
        yield failed("round.resume_point", str(error), error.remedy or "set loop.first_step")
        return
    yield require(
        "round.resume_point",
        reached is not None and reached >= before,
        f"iteration {reached} in {config.checkpoints.load}, round {loop.resume_round} goes on "
        f"after {before}",
        "point TRAIN_LOAD to the checkpoints of the round before, or resume an earlier round",
    )


def _hooks(config: SlimeConfig, environ: Mapping[str, str]) -> Iterator[Check]:
    from trainer.engines.slime.settings import read_hook_settings

    if not config.paths.hooks.is_file():
        return
    try:
        settings = read_hook_settings(config.paths.hooks)
    except InputError as error:
        yield failed("hooks.settings", str(error), "correct the hook configuration")
        return
    yield passed("hooks.settings", str(config.paths.hooks))
    if settings.environment == "in_process":
        yield passed("slots.budget", "the shop runs inside the rollout worker: no slots needed")
        return
    if settings.environment_token_env is not None:
        name = settings.environment_token_env
        yield require(
            "hooks.token",
            bool(environ.get(name)),
            f"the shop service's token in {name}",
            f"export {name}, or leave out shopsim_environment_token_env",
        )
    used = settings.episode_concurrency + config.loop.reserved_env_slots
    yield require(
        "slots.budget",
        used <= config.loop.shopsim_env_slots,
        f"{settings.episode_concurrency} episodes + {config.loop.reserved_env_slots} reserved "
        f"<= {config.loop.shopsim_env_slots} slots",
        "raise SHOPSIM_ENV_SLOTS or lower shopsim_episode_concurrency",
    )


def _export(config: SlimeConfig) -> Check:
    export = config.checkpoints.save_hf
    if export is None:
        return skipped(
            "export.kept",
            "no Hugging Face export: nothing to serve for a gate",
            "set SAVE_HF to a folder with {rollout_id} in its name",
        )
    if "{rollout_id}" not in str(export):
        return warning(
            "export.kept",
            f"{export}: each save overwrites the last one",
            "put {rollout_id} into SAVE_HF to keep the exports of earlier rounds",
        )
    return passed("export.kept", str(export))


def _secrets(config: SlimeConfig, environ: Mapping[str, str]) -> Check:
    if config.wandb.use and config.wandb.mode == "online":
        known = bool(environ.get("WANDB_API_KEY")) or (Path.home() / ".netrc").is_file()
        return require(
            "wandb.login",
            known,
            "a key is known" if known else "neither WANDB_API_KEY nor a login",
            "run wandb login, or set WANDB_MODE=offline",
        )
    return passed("wandb.login", "no key needed")
