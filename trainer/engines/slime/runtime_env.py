"""The environment of a slime job: what every Ray worker of it must see (training.md §6.1).

Public values and secrets are kept apart from the start: only names of secrets are ever printed, and
a local cluster gets them through the environment of its head instead of through Ray's job record,
which its dashboard shows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trainer.engines.slime.config import SlimeConfig

WANDB_KEY = "WANDB_API_KEY"
PASSED_ON = (
    "TMPDIR",
    "TEMP",
    "TMP",
    "RAY_TMPDIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "CUDA_CACHE_PATH",
    "XDG_CACHE_HOME",
)
NVIDIA_LIBRARIES = (
    *("cudnn", "cublas", "nccl", "nvshmem", "cusparse", "cusolver", "cufft", "curand"),
    *("cuda_runtime", "cuda_nvrtc", "nvjitlink"),
)


@dataclass(frozen=True, slots=True)
class JobEnvironment:
    """Variables of a job: ``public`` may be printed and recorded, ``secret`` may not."""

    public: Mapping[str, str]
    secret: Mapping[str, str] = field(default_factory=dict, repr=False)

    def masked(self) -> dict[str, str]:
        """What a person may see."""
        return {**self.public, **dict.fromkeys(self.secret, "(from the environment)")}


def job_environment(
    config: SlimeConfig, environ: Mapping[str, str], *, secrets: Iterable[str] = ()
) -> JobEnvironment:
    """The variables of the job's workers, from the configuration and the launching environment.

    ``secrets``: names of further variables that the workers need and nobody may see.
    """
    root = config.paths.project_root
    public = {
        "PYTHONPATH": os.pathsep.join(
            [str(root), str(config.paths.slime), str(config.paths.megatron)]
        ),
        "SHOPSIMRL_PROJECT_ROOT": str(root),
        "CUDA_DEVICE_MAX_CONNECTIONS": "1",
        "NCCL_NVLS_ENABLE": "0",
        "PYTHONUNBUFFERED": "1",
        "INTRASKILL_ROUND": config.round_id,
    }
    libraries = nvidia_library_path(environ)
    if libraries:
        public["LD_LIBRARY_PATH"] = libraries
    if config.wandb.use:
        public |= _wandb_environment(config)
    public |= {name: environ[name] for name in PASSED_ON if environ.get(name)}
    public |= cache_environment(config)
    names = {*secrets, WANDB_KEY} if config.wandb.use else set(secrets)
    secret = {name: environ[name] for name in sorted(names) if environ.get(name)}
    return JobEnvironment(public, secret)


def _wandb_environment(config: SlimeConfig) -> dict[str, str]:
    values = {
        "WANDB_PROJECT": config.wandb.project,
        "WANDB_GROUP": config.wandb.group,
        "WANDB_MODE": config.wandb.mode,
        "WANDB_DIR": str(config.wandb_dir),
    }
    return {**values, "WANDB_ENTITY": config.wandb.entity} if config.wandb.entity else values


def cache_environment(config: SlimeConfig) -> dict[str, str]:
    """Variables that move every compiler cache and temporary file below ``cluster.cache_root``.

    Unlike a symlink in the home folder this touches nothing that other programs use.
    """
    root = config.cluster.cache_root
    if root is None:
        return {}
    temporary = str(root / "tmp")
    return {
        "TORCHINDUCTOR_CACHE_DIR": str(root / "torchinductor"),
        "TRITON_CACHE_DIR": str(root / "triton" / "cache"),
        "CUDA_CACHE_PATH": str(root / "cuda"),
        "XDG_CACHE_HOME": str(root / "xdg"),
        "RAY_TMPDIR": str(root / "ray"),
        "TMPDIR": temporary,
        "TEMP": temporary,
        "TMP": temporary,
    }


def make_cache_folders(config: SlimeConfig) -> None:
    """Create the cache folders; safe to repeat."""
    for value in cache_environment(config).values():
        Path(value).mkdir(parents=True, exist_ok=True)


def nvidia_library_path(environ: Mapping[str, str]) -> str:
    """LD_LIBRARY_PATH with the pip-installed NVIDIA libraries first; empty without any."""
    import sysconfig

    site = Path(sysconfig.get_paths()["purelib"]) / "nvidia"
    found = [
        str(site / name / "lib") for name in NVIDIA_LIBRARIES if (site / name / "lib").is_dir()
    ]
    present = environ.get("LD_LIBRARY_PATH", "")
    return os.pathsep.join([*found, present] if present else found)
