"""``python -m jobs.launchers.slime_round --checkpoint FOLDER --state FILE LAUNCH``: train a round.

The slime job of a round's launch file, followed to its end as ``ray_job slime`` does; then the
export becomes the round's checkpoint. A round whose last step is saved is not trained again, so a
crash at any instant ends in the same checkpoint. The launch file was frozen with the round:
variables of the environment override nothing but what is a fact of the host. What slime's trainer
tells in the job's output alone (``round_log``) is kept beside the checkpoint. Exit codes: those of
the job; 2 for a refused launch, 70 when the job left no whole checkpoint.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from jobs.launchers import ADDRESS, LOCAL
from jobs.launchers.overheard import Overheard
from jobs.launchers.ray_job import EXIT_BAD_INPUT, job_of, ready_plan
from jobs.launchers.ray_jobs import RUNS, JobServerGone, RayJobs
from jobs.launchers.ray_left import end_left, left_job
from jobs.launchers.ray_run import EXIT_LOST, RayJob, RayRun
from trainer.canonical import fingerprint
from trainer.config_files import read_yaml
from trainer.engines.slime.checkpoints import first_step, round_is_trained
from trainer.engines.slime.config import SlimeConfig
from trainer.engines.slime.exports import round_checkpoint
from trainer.engines.slime.plan import LaunchPlan, plan_launch
from trainer.engines.slime.round_log import RoundLog
from trainer.engines.slime.variables import load_slime_config, variables
from trainer.errors import IncompleteError, InputError

OF_THE_HOST = {"RAY_ADDRESS", "MASTER_ADDR", "CUDA_VISIBLE_DEVICES", "SYS_CACHE_ROOT"}


def host_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """``environ`` without variables that would change a frozen launch."""
    frozen = {item.name for item in variables()} - OF_THE_HOST
    kept = {name: value for name, value in environ.items() if name not in frozen}
    address = environ.get(ADDRESS, "")
    if address and address != LOCAL:
        kept["RAY_ADDRESS"] = address
    return kept


def train(launch: Path, checkpoint: Path, state: Path, environ: Mapping[str, str]) -> int:
    """Train the round unless it is trained, and publish its checkpoint; returns the exit code.

    Raises InputError for a launch that is refused, IncompleteError when no checkpoint came of it.
    """
    own = host_environment(environ)
    config, _used = load_slime_config(launch, own)
    is_trained = round_is_trained(config, config.loop.resume_round)
    if is_trained and not _still_runs(state):
        _take_left(state, _round_log(checkpoint, config))
    else:
        plan = plan_launch(launch, own) if is_trained else ready_plan(launch, own)
        heard = Overheard(sys.stdout, _round_log(checkpoint, config).read)
        code = RayRun(_job(plan), state, heard).run()
        if code:
            return code
    record = round_checkpoint(checkpoint, config)
    sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
    return 0


def _round_log(checkpoint: Path, config: SlimeConfig) -> RoundLog:
    return RoundLog(
        checkpoint.parent,
        first_step=first_step(config),
        updates_per_step=config.batch.updates_per_step,
    )


def _still_runs(state: Path) -> bool:
    """Whether the job of a launcher that was killed runs: after its last step it still exports."""
    left = left_job(state)
    if left is None:
        return False
    with suppress(JobServerGone):
        return RayJobs(left.address).status(left.name).state in RUNS
    return False


def _take_left(state: Path, log: RoundLog) -> None:
    """What the job of a launcher that was killed told till its end; its head ends here."""
    left = left_job(state)
    if left is None:
        return
    with suppress(JobServerGone, RuntimeError):  # the round is trained; only figures are missing
        for line in RayJobs(left.address).logs(left.name).splitlines():
            log.read(line)
    with suppress(JobServerGone):
        end_left(state, lambda text: sys.stdout.write(f"[ray] {text}\n"))
    state.unlink(missing_ok=True)


def _job(plan: LaunchPlan) -> RayJob:
    """The round's job, known by its command and hooks, but not by where it goes on from: that moves
    with what it has saved.
    """
    at = plan.argv.index("--load")
    rest = [*plan.argv[:at], *plan.argv[at + 2 :]]
    return replace(job_of(plan), same=fingerprint([rest, read_yaml(plan.config.paths.hooks)]))


def main(argv: Sequence[str] | None = None) -> int:
    """Parse and train."""
    parser = argparse.ArgumentParser(
        prog="python -m jobs.launchers.slime_round", description=__doc__
    )
    parser.add_argument("--checkpoint", type=Path, required=True, help="folder of its record")
    parser.add_argument("--state", type=Path, required=True, help="file that remembers the job")
    parser.add_argument("launch", type=Path)
    args = parser.parse_args(argv)
    try:
        return train(args.launch, args.checkpoint, args.state, os.environ)
    except (InputError, JobServerGone) as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_BAD_INPUT
    except IncompleteError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_LOST


if __name__ == "__main__":
    raise SystemExit(main())
