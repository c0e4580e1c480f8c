"""``jobs.launchers.slime_round`` without Ray and Megatron: hooks, files and checkpoint are real.

In the job's place the groups of each step are played here, by the engine of the contract tests.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from jobs.launchers import slime_round
from tests.contracts.harness import Harness, harness_of
from tests.contracts.shopping_scripts import by_session, losing, tasks, winning
from tests.jobs.holding import hold
from trainer.config_files import load_config, read_yaml
from trainer.engines.slime.checkpoints import TRACKER, export_folder
from trainer.engines.slime.config import SlimeConfig
from trainer.engines.slime.hooks import filter_group, log_rollout, record_groups
from trainer.engines.slime.runtime import runtime
from trainer.engines.slime.samples import leaves
from trainer.files import write_bytes, write_json, write_text

LAUNCH = Path(sys.argv[-1])


def half_and_half(group: int, sample: int, retry: bool) -> Any:
    """Even groups are mixed, odd ones all wrong; their retries fail too."""
    task = tasks()[group % len(tasks())]
    return winning(task) if group % 2 == 0 and sample % 2 == 0 else losing(task)


class PlayedRun:
    """In the place of a Ray job."""

    def __init__(self, job: Any, state: Path, output: Any) -> None:
        self.output = output
        assert job.entrypoint.endswith(f"--custom-config-path {hooks_file()}"), job.entrypoint

    def run(self) -> int:
        config = load_config(LAUNCH, SlimeConfig)
        with (
            tempfile.TemporaryDirectory() as folder,
            pytest.MonkeyPatch.context() as patch,
            harness_of("double", Path(folder), patch) as slime,
        ):
            play(slime, config)
        for update in range(*steps_of(config)):  # one a step
            tell(self.output, "step", update, "'train/loss': 0.5, 'train/grad_norm': 0.25")
            tell(self.output, "perf", update, "'perf/step_time': 2.5")
        save(config)
        return 0


def hooks_file() -> Path:
    return load_config(LAUNCH, SlimeConfig).paths.hooks


def play(slime: Harness, config: SlimeConfig) -> None:
    """Every step of the round: generate, filter, record, log."""
    batch = config.batch
    slime.play(by_session(half_and_half))
    args = slime.args(
        n_samples_per_prompt=batch.n_samples_per_prompt,
        rollout_batch_size=batch.rollout_batch_size,
        over_sampling_batch_size=batch.wave,
        **read_yaml(hooks_file()),
    )
    begin, end = steps_of(config)
    for step in range(begin, end):
        first = step * batch.wave
        groups = [
            slime.generate(slime.group(first + n, batch.n_samples_per_prompt), args)
            for n in range(batch.wave)
        ]
        kept = [group for group in groups if filter_group(args, leaves([group])).keep]
        record_groups(args, groups, None)
        log_rollout(step, args, leaves(kept), {}, 1.5)
        runtime().publisher.wait()
        hold(step - begin + 1)


def steps_of(config: SlimeConfig) -> tuple[int, int]:
    """The round's first step, and the one behind its last."""
    loop = config.loop
    assert loop.first_step is not None
    first = loop.first_step + loop.resume_round * loop.steps_per_round
    return first, config.batch.num_rollout


def tell(output: Any, kind: str, number: int, figures: str) -> None:
    """A line of the trainer's log, as Ray hands it on."""
    output.write(f"(MegatronTrainRayActor pid=1) model.py:918 - {kind} {number}: {{{figures}}}\n")


def save(config: SlimeConfig) -> None:
    """What Megatron leaves: its tracker, and weights that depend on how far it came."""
    last = config.batch.num_rollout - 1
    loaded = (config.checkpoints.load / TRACKER).read_text()
    export = export_folder(config, last)
    write_json(export / "config.json", {})
    write_bytes(export / "model.safetensors", f"{loaded} then {last}".encode())
    write_text(config.checkpoints.save / TRACKER, str(last))


if __name__ == "__main__":
    slime_round.RayRun = PlayedRun  # type: ignore[misc, assignment]
    raise SystemExit(slime_round.main())
