"""What a launch will do, complete before anything is started: command, environment, job, checks.

``--dry-run`` prints this plan; a started job records it. Secrets are named, never shown.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.canonical import fingerprint
from trainer.engines.slime.checks import Check, failures
from trainer.engines.slime.command import model_arguments, model_script, slime_arguments
from trainer.engines.slime.config import SlimeConfig
from trainer.engines.slime.refusals import launch_checks
from trainer.engines.slime.runtime_env import JobEnvironment, job_environment
from trainer.engines.slime.settings import read_hook_settings
from trainer.engines.slime.variables import load_slime_config
from trainer.errors import InputError


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """One slime job. ``ray_head`` is None when the job goes to a cluster that already runs."""

    config: SlimeConfig
    overrides: Mapping[str, str]
    argv: tuple[str, ...]
    working_dir: Path
    environment: JobEnvironment
    ray_head: tuple[str, ...] | None
    job_server: str
    checks: tuple[Check, ...]

    @property
    def entrypoint(self) -> str:
        """The job's command as the Job Submission API takes it: quoted for a shell."""
        return shlex.join(self.argv)

    def to_json(self) -> dict[str, Any]:
        """The plan as ``--dry-run`` prints it."""
        return {
            "ready": not failures(self.checks),
            "entrypoint": self.entrypoint,
            "argv": list(self.argv),
            "argv_sha256": fingerprint(list(self.argv)),
            "working_dir": str(self.working_dir),
            "environment": self.environment.masked(),
            "ray_head": None if self.ray_head is None else shlex.join(self.ray_head),
            "job_server": self.job_server,
            "overridden_by_environment": dict(self.overrides),
            "derived": self.derived(),
            "checks": [check.to_json() for check in self.checks],
        }

    def derived(self) -> dict[str, Any]:
        """The numbers that follow from the settings."""
        batch, cluster = self.config.batch, self.config.cluster
        return {
            "episodes_submitted_per_wave": batch.wave * batch.n_samples_per_prompt,
            "episodes_kept_per_step": batch.episodes_kept,
            "updates_per_step": batch.updates_per_step,
            "trainer_data_parallel": cluster.num_nodes * cluster.num_gpus // cluster.tp_size,
            "engines": cluster.num_nodes * cluster.num_gpus // cluster.rollout_tp_size,
            "num_rollout": batch.num_rollout,
            "last_step": batch.num_rollout - 1,
        }


def ray_head_command(config: SlimeConfig) -> tuple[str, ...]:
    """``ray start`` of a local head, in the foreground so that it can be stopped as a group."""
    cluster = config.cluster
    command = [
        *("ray", "start", "--head", "--block"),
        *("--node-ip-address", cluster.master_addr),
        *("--port", str(cluster.head_port)),
        *("--num-gpus", str(cluster.num_gpus)),
        "--disable-usage-stats",
        *("--dashboard-host", cluster.dashboard_host),
        *("--dashboard-port", str(cluster.dashboard_port)),
    ]
    if cluster.cache_root is not None:
        command += ["--temp-dir", str(cluster.cache_root / "ray")]
    return tuple(command)


def plan_launch(path: Path, environ: Mapping[str, str]) -> LaunchPlan:
    """The plan of a launch file. Raises InputError for a file that cannot be understood.

    Failed checks do not raise: the plan says what is missing, and ``ready`` is false.
    """
    config, overrides = load_slime_config(path, environ)
    script = model_script(config)
    model_args = model_arguments(script) if script.is_file() else ["<MODEL_ARGS>"]
    train = config.paths.slime / "train.py"
    local = config.cluster.address is None
    port = config.cluster.dashboard_port
    return LaunchPlan(
        config=config,
        overrides=overrides,
        argv=("python3", str(train), *slime_arguments(config, model_args)),
        working_dir=config.paths.slime,
        environment=job_environment(config, environ, secrets=_secret_names(config)),
        ray_head=ray_head_command(config) if local else None,
        job_server=config.cluster.address or f"http://{config.cluster.dashboard_host}:{port}",
        checks=tuple(launch_checks(config, environ)),
    )


def _secret_names(config: SlimeConfig) -> list[str]:
    """Variables that the hooks read secrets from; none where a check names what is wrong."""
    try:
        name = read_hook_settings(config.paths.hooks).environment_token_env
    except InputError:
        return []
    return [] if name is None else [name]
