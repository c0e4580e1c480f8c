"""``python -m jobs.launchers.ray_job``: slime jobs, and any command, on a Ray cluster.

``run`` follows a job as if it were a local process (see ``ray_run``); ``slime`` does the same with
the plan of a launch file. ``submit``, ``status``, ``logs`` and ``stop`` talk to a running cluster
and return at once; ``end`` waits until the job that a killed launcher left has ended.
Results are one JSON object on stdout. Exit codes: 0 done, 1 the job failed, 2
bad input or a refused launch; ``run`` and ``slime`` end as the job did.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jobs.launchers.ray_head import local_head
from jobs.launchers.ray_jobs import JobServerGone, RayJobs
from jobs.launchers.ray_left import StillRuns, end_left
from jobs.launchers.ray_run import RayJob, RayRun
from trainer.engines.slime.checkpoints import mark_first_step
from trainer.engines.slime.checks import failures
from trainer.engines.slime.plan import LaunchPlan, plan_launch
from trainer.engines.slime.runtime_env import make_cache_folders
from trainer.errors import InputError

DEFAULT_ADDRESS = "http://127.0.0.1:8265"
EXIT_BAD_INPUT = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit code."""
    args = _parser().parse_args(argv)
    try:
        return int(args.func(args))
    except (InputError, JobServerGone, StillRuns) as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_BAD_INPUT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m jobs.launchers.ray_job", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run a command as a Ray job and follow it")
    run.add_argument("--address", default=DEFAULT_ADDRESS)
    run.add_argument("--state", type=Path, required=True, help="file that remembers the job")
    run.add_argument("--start-head", action="store_true", help="start a head at the address")
    run.add_argument("--name", default="job")
    run.add_argument("--resources", type=json.loads, help='JSON, e.g. {"node-b": 1}')
    run.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    run.add_argument("--cwd", type=Path, default=Path.cwd())
    run.add_argument("argv", nargs=argparse.REMAINDER, metavar="-- COMMAND …")
    run.set_defaults(func=_run)

    slime = commands.add_parser("slime", help="run the job of a launch file and follow it")
    slime.add_argument("config", type=Path)
    slime.add_argument("--state", type=Path, help="default: beside the saved checkpoints")
    slime.set_defaults(func=_slime)

    submit = commands.add_parser("submit", help="hand a launch file's job to a running cluster")
    submit.add_argument("config", type=Path)
    submit.set_defaults(func=_submit)

    end = commands.add_parser("end", help="end the job that a killed launcher left, if it runs")
    end.add_argument("--state", type=Path, required=True, help="file that remembers the job")
    end.set_defaults(func=_end)

    for name, action in (("status", _status), ("logs", _logs), ("stop", _stop)):
        command = commands.add_parser(name)
        command.add_argument("submission_id")
        command.add_argument("--address", default=os.environ.get("RAY_ADDRESS", DEFAULT_ADDRESS))
        command.set_defaults(func=action)
    return parser


def _run(args: argparse.Namespace) -> int:
    argv = args.argv[1:] if args.argv[:1] == ["--"] else args.argv
    if not argv:
        raise InputError("there is no command to run", field="argv", remedy="put it after --")
    environment = dict(item.split("=", 1) for item in args.env)
    job = RayJob(
        name=args.name,
        entrypoint=entrypoint(argv, args.cwd),
        address=args.address,
        head=local_head(args.address) if args.start_head else None,
        environment=environment,
        resources=args.resources,
    )
    return RayRun(job, args.state).run()


def _slime(args: argparse.Namespace) -> int:
    plan = ready_plan(args.config, os.environ)
    state = args.state or plan.config.checkpoints.save / "ray-job.json"
    return RayRun(job_of(plan), state).run()


def _submit(args: argparse.Namespace) -> int:
    plan = ready_plan(args.config, os.environ)
    if plan.ray_head is not None:
        raise InputError(
            "there is no cluster to hand the job to",
            file=args.config,
            field="cluster.address",
            remedy="set RAY_ADDRESS, or follow the job with: ray_job slime CONFIG",
        )
    job = job_of(plan)
    made = RayJobs(job.address).submit(
        job.entrypoint,
        f"{job.name}-{os.getpid():x}",
        environment={**job.environment, **job.secrets},
    )
    return _print({"submission_id": made, "address": job.address})


def _status(args: argparse.Namespace) -> int:
    status = RayJobs(args.address).status(args.submission_id)
    _print(
        {
            "submission_id": args.submission_id,
            "state": status.state,
            "exit_code": status.exit_code,
            "message": status.message,
        }
    )
    return 1 if status.state in ("failed", "unknown") else 0


def _logs(args: argparse.Namespace) -> int:
    sys.stdout.write(RayJobs(args.address).logs(args.submission_id))
    return 0


def _stop(args: argparse.Namespace) -> int:
    jobs = RayJobs(args.address)
    jobs.stop(args.submission_id)
    return _print(
        {"submission_id": args.submission_id, "state": jobs.status(args.submission_id).state}
    )


def _end(args: argparse.Namespace) -> int:
    end_left(args.state, lambda text: sys.stdout.write(f"[ray] {text}\n"))
    return 0


def ready_plan(path: Path, environ: Mapping[str, str]) -> LaunchPlan:
    """The plan of a launch file whose checks all hold. Raises InputError with those that do not."""
    plan = plan_launch(path, environ)
    refused = failures(plan.checks)
    if refused:
        lines = "; ".join(f"{check.name}: {check.detail}. {check.remedy}" for check in refused)
        raise InputError(f"the launch is refused: {lines}", file=path)
    mark_first_step(plan.config)
    make_cache_folders(plan.config)
    return plan


def job_of(plan: LaunchPlan) -> RayJob:
    """The Ray job of a slime launch."""
    return RayJob(
        name=f"slime-{plan.config.round_id}",
        entrypoint=entrypoint(plan.argv, plan.working_dir),
        address=plan.job_server,
        head=plan.ray_head,
        environment=plan.environment.public,
        secrets=plan.environment.secret,
    )


def entrypoint(argv: Sequence[str], cwd: Path) -> str:
    """A command for Ray, which runs it through a shell in a folder of its own choice.

    ``exec`` makes the command itself the process that Ray signals.
    """
    return f"cd {shlex.quote(str(cwd))} && exec {shlex.join(argv)}"


def _print(value: dict[str, Any]) -> int:
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
