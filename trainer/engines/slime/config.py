"""The launch of a slime job as a typed value: every variable of training.md §6 with its default.

A configuration is a YAML file; each field that carries an environment variable may be overridden by
it, so the published shell usage keeps working. Nothing here reads the file system: what must exist
on the host is checked by ``refusals``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from trainer.config import Config, ConfigPath, Count, Positive, Probability

PROJECT_ROOT = Path(__file__).resolve().parents[3]


def variable(name: str, default: Any, meaning: str, **constraints: Any) -> Any:
    """A field that the environment variable ``name`` may override."""
    return Field(default, description=meaning, json_schema_extra={"env": name}, **constraints)


def required(name: str, meaning: str) -> Any:
    """A field without a default that the environment variable ``name`` may set."""
    return Field(description=meaning, json_schema_extra={"env": name})


class PathSettings(Config):
    """Where code and data lie. Null means the place below ``project_root`` named in the meaning."""

    project_root: ConfigPath = variable(
        "SHOPSIMRL_PROJECT_ROOT", PROJECT_ROOT, "checkout of this project"
    )
    slime_dir: ConfigPath | None = variable(
        "SLIME_DIR", None, "slime checkout (default: slime below the project)"
    )
    megatron_path: ConfigPath | None = variable(
        "MEGATRON_PATH", None, "Megatron-LM checkout (default: Megatron-LM below the project)"
    )
    task_data: ConfigPath | None = variable(
        "TASK_DATA", None, "training tasks (default: data/shopsim_train.jsonl below the project)"
    )
    split_file: ConfigPath | None = Field(
        None, description="split file the tasks were taken from; null skips the id comparison"
    )
    custom_config: ConfigPath | None = variable(
        "CUSTOM_CONFIG", None, "YAML of shopsim_* keys (default: configs/slime/hooks.yaml)"
    )
    model_script: str = Field("qwen3.5-4B", description="name below slime's scripts/models")

    @property
    def slime(self) -> Path:
        """The slime checkout."""
        return self.slime_dir or self.project_root / "slime"

    @property
    def megatron(self) -> Path:
        """The Megatron-LM checkout."""
        return self.megatron_path or self.project_root / "Megatron-LM"

    @property
    def tasks(self) -> Path:
        """The training tasks, JSON lines."""
        return self.task_data or self.project_root / "data" / "shopsim_train.jsonl"

    @property
    def hooks(self) -> Path:
        """The YAML file whose keys become attributes of slime's arguments."""
        return self.custom_config or self.project_root / "configs" / "slime" / "hooks.yaml"


class CheckpointSettings(Config):
    """What is loaded, and where and how often it is saved."""

    hf_checkpoint: ConfigPath = required("HF_CHECKPOINT", "Hugging Face folder of the start model")
    load: ConfigPath = required("TRAIN_LOAD", "Megatron distributed checkpoint to load")
    save: ConfigPath = required("TRAIN_SAVE", "folder of the checkpoints this run writes")
    save_interval: Count = variable("SAVE_INTERVAL", 20, "steps between saves")
    save_hf: ConfigPath | None = variable(
        "SAVE_HF", None, "Hugging Face export; {rollout_id} in it is filled in"
    )


class ClusterSettings(Config):
    """GPUs and the Ray cluster they belong to."""

    num_gpus: Count = variable("NUM_GPUS", 4, "GPUs of a node")
    num_nodes: Count = variable("NUM_NODES", 1, "nodes; more than one needs address")
    tp_size: Count = variable("TP_SIZE", 2, "tensor parallel size of the trainer")
    rollout_tp_size: Count = variable("ROLLOUT_TP_SIZE", 1, "tensor parallel size of an engine")
    address: str | None = variable(
        "RAY_ADDRESS", None, "job server of a running cluster (http://head:8265); null starts one"
    )
    master_addr: str = variable("MASTER_ADDR", "127.0.0.1", "address the local head binds")
    head_port: int = Field(
        6389, ge=1, le=65535, description="port of the local head; Ray's own default is Redis's"
    )
    dashboard_host: str = Field("127.0.0.1", description="never a public address: no login there")
    dashboard_port: int = Field(8265, ge=1, le=65535, description="port of the job server")
    cache_root: ConfigPath | None = variable(
        "SYS_CACHE_ROOT", None, "folder for all compiler and Ray caches"
    )


class BatchSettings(Config):
    """Groups, episodes and steps (training.md §4.8, §6.1)."""

    rollout_batch_size: Count = variable("ROLLOUT_BATCH_SIZE", 16, "groups kept per step")
    n_samples_per_prompt: Annotated[int, Field(ge=2)] = variable(
        "N_SAMPLES_PER_PROMPT", 8, "episodes of a group"
    )
    over_sampling_batch_size: Count | None = variable(
        "OVER_SAMPLING_BATCH_SIZE", None, "groups per wave (default: groups kept)"
    )
    global_batch_size: Count | None = variable(
        "GLOBAL_BATCH_SIZE", None, "episodes per update (default: all of a step)"
    )
    num_rollout: Count = variable("NUM_ROLLOUT", 21, "cumulative end of the steps, exclusive")

    @property
    def episodes_kept(self) -> int:
        """Episodes that enter the updates of one step."""
        return self.rollout_batch_size * self.n_samples_per_prompt

    @property
    def wave(self) -> int:
        """Groups submitted at once."""
        return self.over_sampling_batch_size or self.rollout_batch_size

    @property
    def episodes_per_update(self) -> int:
        """Episodes of one optimiser update."""
        return self.global_batch_size or self.episodes_kept

    @property
    def updates_per_step(self) -> int:
        """Optimiser updates on the episodes of one step."""
        return self.episodes_kept // self.episodes_per_update


class TokenSettings(Config):
    """Limits in tokens (training.md §6.3: which of them truncates and which only packs)."""

    max_tokens_per_gpu: Count = variable("MAX_TOKENS_PER_GPU", 16384, "packing bin; never cuts")
    rollout_max_context_len: Count = variable("ROLLOUT_MAX_CONTEXT_LEN", 24576, "cap of a Sample")
    rollout_max_response_len: Count = variable("ROLLOUT_MAX_RESPONSE_LEN", 4096, "cap of a turn")
    log_probs_chunk_size: Count = variable("LOG_PROBS_CHUNK_SIZE", 1024, "rows per softmax chunk")


class SamplingSettings(Config):
    """How the policy samples. Nucleus and top-k sampling would need replay data: both are off."""

    temperature: Positive = 0.6
    top_p: float = 1.0
    top_k: int = -1
    seed: Annotated[int, Field(ge=0)] | None = Field(
        None, description="of task order and sampling; null: slime's own"
    )


class AlgorithmSettings(Config):
    """GRPO without a KL term (training.md §6.2)."""

    eps_clip: Positive = 0.2
    eps_clip_high: Positive = 0.28
    reward_key: str = "reward"
    use_rollout_logprobs: bool = Field(
        False, description="take the sampler's log-probabilities into the ratio: saves one pass"
    )
    use_tis: bool = Field(False, description="truncated importance sampling against the sampler")


class OptimiserSettings(Config):
    """Adam with a constant rate; the schedule is overridden because each round's job is longer."""

    lr: Positive = 1e-6
    weight_decay: Annotated[float, Field(ge=0)] = 0.1
    adam_beta1: Probability = 0.9
    adam_beta2: Probability = 0.98


class EngineSettings(Config):
    """The SGLang engines inside the job."""

    mem_fraction: Annotated[float, Field(gt=0, lt=1)] = variable(
        "SGLANG_MEM_FRACTION", 0.7, "share of GPU memory for weights and cache"
    )
    tool_call_parser: str = "qwen3_coder"
    reasoning_parser: str = "qwen3"
    router_policy: str = "consistent_hashing"


class WandbSettings(Config):
    """The tracker. Its key comes from the login or WANDB_API_KEY, never from a file or a flag."""

    use: bool = variable("USE_WANDB", False, "log to W&B: 0 or 1")
    mode: Literal["online", "offline", "disabled"] = variable("WANDB_MODE", "online", "W&B mode")
    project: str = variable("WANDB_PROJECT", "shopsimrl", "W&B project")
    group: str = variable("WANDB_GROUP", "shopsimrl-training", "W&B group and run name")
    dir: ConfigPath | None = variable(
        "WANDB_DIR", None, "folder of offline runs (default: runs/wandb below the project)"
    )
    entity: str | None = variable("WANDB_ENTITY", None, "W&B team")

    @field_validator("use", mode="before")
    @classmethod
    def _only_zero_or_one(cls, value: object) -> bool:
        if isinstance(value, bool):
            return value
        if value in ("0", "1", 0, 1):
            return value in ("1", 1)
        raise ValueError("must be 0 or 1")


class LoopSettings(Config):
    """The rounds around the job (training.md §6.4)."""

    steps_per_round: Count = variable("STEPS_PER_ROUND", 20, "steps of a round")
    num_rounds: Count = variable("NUM_ROUNDS", 4, "rounds of the experiment")
    resume_round: Annotated[int, Field(ge=0)] = variable("RESUME_ROUND", 0, "first round to run")
    first_step: Annotated[int, Field(ge=0)] | None = Field(
        None, description="id of the very first step; null derives it from the checkpoints"
    )
    sglang_port: int = variable("SGLANG_PORT", 30000, "port of the gate's server", ge=1, le=65535)
    shopsim_port: int = variable("SHOPSIM_PORT", 5700, "port of the shop service", ge=1, le=65535)
    shopsim_env_slots: Count = variable("SHOPSIM_ENV_SLOTS", 48, "slots of the shop service")
    reserved_env_slots: Annotated[int, Field(ge=0)] = Field(
        16, description="slots kept for the analyst and evaluators beside training"
    )
    python: str = variable("SHOPSIM_PYTHON", "python3", "interpreter of the shop service")
    initial_skillbank: ConfigPath | None = variable("INITIAL_SKILLBANK", None, "first bank")
    initial_curriculum: ConfigPath | None = variable("INITIAL_CURRICULUM", None, "first curriculum")
    visible_devices: str = variable("CUDA_VISIBLE_DEVICES", "0,1,2,3", "GPUs this run may use")


class SlimeConfig(Config):
    """``engine: slime``: one job of one round, and the loop it belongs to."""

    engine: Literal["slime"]
    round_id: str = "round-000"
    paths: PathSettings = PathSettings()
    checkpoints: CheckpointSettings
    cluster: ClusterSettings = ClusterSettings()
    batch: BatchSettings = BatchSettings()
    tokens: TokenSettings = TokenSettings()
    sampling: SamplingSettings = SamplingSettings()
    algorithm: AlgorithmSettings = AlgorithmSettings()
    optimiser: OptimiserSettings = OptimiserSettings()
    engines: EngineSettings = EngineSettings()
    wandb: WandbSettings = WandbSettings()
    loop: LoopSettings = LoopSettings()

    @property
    def wandb_dir(self) -> Path:
        """Folder of W&B's files."""
        return self.wandb.dir or self.paths.project_root / "runs" / "wandb"
