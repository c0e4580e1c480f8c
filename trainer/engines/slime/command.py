"""The slime command line of one job: every flag and value of training.md §6.2, in its order.

The list is pure data of the configuration and of slime's own model arguments; nothing secret is
ever part of it, because slime copies its arguments into the tracker's run configuration.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from trainer.engines.slime.config import SlimeConfig
from trainer.errors import InputError

HOOKS = {
    "--custom-generate-function-path": "trainer.engines.slime.hooks.generate",
    "--dynamic-sampling-filter-path": "trainer.engines.slime.hooks.filter_group",
    "--custom-reward-post-process-path": "trainer.engines.slime.hooks.normalise_rewards",
    "--rollout-all-samples-process-path": "trainer.engines.slime.hooks.record_groups",
    "--custom-rollout-log-function-path": "trainer.engines.slime.hooks.log_rollout",
}


def model_script(config: SlimeConfig) -> Path:
    """slime's shell file that holds the model's Megatron arguments."""
    return config.paths.slime / "scripts" / "models" / f"{config.paths.model_script}.sh"


def model_arguments(script: Path) -> list[str]:
    """``MODEL_ARGS`` of one of slime's model files. Raises InputError when it defines none.

    The file is a shell script that some models compute with, so a shell evaluates it.
    """
    code = 'source "$1" && printf "%s\\0" "${MODEL_ARGS[@]}"'
    try:
        done = subprocess.run(
            ["bash", "-c", code, "bash", str(script)],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
            cwd=script.parent,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise InputError(f"cannot read the model arguments: {error}", file=script) from error
    values = done.stdout.split("\0")[:-1]
    if not values or values == [""]:
        raise InputError(
            "defines no MODEL_ARGS",
            file=script,
            remedy="check paths.model_script and slime's commit",
        )
    return values


def slime_arguments(config: SlimeConfig, model_args: Sequence[str]) -> list[str]:
    """All arguments of slime's ``train.py``. ``model_args`` are the model's Megatron arguments."""
    return [
        *_placement(config),
        *model_args,
        *_checkpoints(config),
        *_data(config),
        *_sizes(config),
        *_sampling(config),
        *_algorithm(config),
        *_memory(config),
        *_engines(config),
        *_hooks(config),
        *_wandb(config),
    ]


def _placement(config: SlimeConfig) -> list[str]:
    gpus = str(config.cluster.num_gpus)
    return [
        *("--actor-num-nodes", str(config.cluster.num_nodes)),
        *("--actor-num-gpus-per-node", gpus),
        *("--num-gpus-per-node", gpus),
        "--colocate",
    ]


def _checkpoints(config: SlimeConfig) -> list[str]:
    points = config.checkpoints
    arguments = [
        *("--hf-checkpoint", str(points.hf_checkpoint)),
        *("--load", str(points.load)),
        *("--save", str(points.save)),
        *("--save-interval", str(points.save_interval)),
    ]
    return [*arguments, "--save-hf", str(points.save_hf)] if points.save_hf else arguments


def _data(config: SlimeConfig) -> list[str]:
    # The chat template is only named because checkpoints with a processor make slime insist on a
    # message list; the prompt it renders is never used.
    return [
        *("--prompt-data", str(config.paths.tasks)),
        *("--input-key", "prompt"),
        *("--metadata-key", "metadata"),
        "--apply-chat-template",
        "--rollout-shuffle",
    ]


def _sizes(config: SlimeConfig) -> list[str]:
    batch = config.batch
    return [
        *("--num-rollout", str(batch.num_rollout)),
        *("--rollout-batch-size", str(batch.rollout_batch_size)),
        *("--over-sampling-batch-size", str(batch.wave)),
        *("--n-samples-per-prompt", str(batch.n_samples_per_prompt)),
        *("--global-batch-size", str(batch.episodes_per_update)),
    ]


def _sampling(config: SlimeConfig) -> list[str]:
    seed = config.sampling.seed
    return [
        *([] if seed is None else ["--rollout-seed", str(seed)]),
        *("--rollout-max-response-len", str(config.tokens.rollout_max_response_len)),
        *("--rollout-max-context-len", str(config.tokens.rollout_max_context_len)),
        *("--rollout-temperature", str(config.sampling.temperature)),
        *("--rollout-top-p", str(config.sampling.top_p)),
        *("--rollout-top-k", str(config.sampling.top_k)),
        *("--reward-key", config.algorithm.reward_key),
    ]


def _algorithm(config: SlimeConfig) -> list[str]:
    arguments = [
        *("--advantage-estimator", "grpo"),
        *("--eps-clip", str(config.algorithm.eps_clip)),
        *("--eps-clip-high", str(config.algorithm.eps_clip_high)),
        *("--optimizer", "adam"),
        *("--lr", str(config.optimiser.lr)),
        *("--lr-decay-style", "constant"),
        "--override-opt-param-scheduler",
        *("--weight-decay", str(config.optimiser.weight_decay)),
        *("--adam-beta1", str(config.optimiser.adam_beta1)),
        *("--adam-beta2", str(config.optimiser.adam_beta2)),
    ]
    if config.algorithm.use_rollout_logprobs:
        arguments.append("--use-rollout-logprobs")
    if config.algorithm.use_tis:
        arguments.append("--use-tis")
    return arguments


def _memory(config: SlimeConfig) -> list[str]:
    tp = config.cluster.tp_size
    return [
        *("--tensor-model-parallel-size", str(tp)),
        *(["--sequence-parallel"] if tp > 1 else []),
        "--use-dynamic-batch-size",
        *("--max-tokens-per-gpu", str(config.tokens.max_tokens_per_gpu)),
        "--balance-data",
        *("--log-probs-chunk-size", str(config.tokens.log_probs_chunk_size)),
        "--recompute-loss-function",
        *("--recompute-granularity", "full"),
        *("--recompute-method", "uniform"),
        *("--recompute-num-layers", "1"),
        *("--attention-dropout", "0.0"),
        *("--hidden-dropout", "0.0"),
        "--accumulate-allreduce-grads-in-fp32",
        "--attention-softmax-in-fp32",
        *("--attention-backend", "flash"),
    ]


def _engines(config: SlimeConfig) -> list[str]:
    return [
        *("--rollout-num-gpus-per-engine", str(config.cluster.rollout_tp_size)),
        *("--sglang-mem-fraction-static", str(config.engines.mem_fraction)),
        *("--router-policy", config.engines.router_policy),
        *("--sglang-tool-call-parser", config.engines.tool_call_parser),
        *("--sglang-reasoning-parser", config.engines.reasoning_parser),
    ]


def _hooks(config: SlimeConfig) -> list[str]:
    arguments = [text for pair in HOOKS.items() for text in pair]
    return [*arguments, "--custom-config-path", str(config.paths.hooks)]


def _wandb(config: SlimeConfig) -> list[str]:
    wandb = config.wandb
    if not wandb.use:
        return []
    arguments = [
        "--use-wandb",
        *("--wandb-mode", wandb.mode),
        *("--wandb-project", wandb.project),
        *("--wandb-group", wandb.group),
        *("--wandb-dir", str(config.wandb_dir)),
        "--disable-wandb-random-suffix",
    ]
    return [*arguments, "--wandb-team", wandb.entity] if wandb.entity else arguments
