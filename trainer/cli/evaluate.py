"""``python -m trainer evaluate plan | run | summarize CONFIG…``: one arm on a list of tasks.

Several configurations are worked off in order, in one process: arms that share a world and an
engine then pay for starting them once.
"""

from __future__ import annotations

import argparse
import sys
from functools import cache
from pathlib import Path
from typing import Any

from trainer.cli.main import EXIT_INCOMPLETE, add_json_flag, print_json
from trainer.config import EvaluateConfig, SkillsConfig, WorldConfig
from trainer.config_files import load_config
from trainer.engines.open import open_policy
from trainer.errors import InputError
from trainer.files import write_json
from trainer.lock import exclusive
from trainer.progress import listen_for_stop
from trainer.rollout.evaluate import Evaluation, Execution, build_plan, choose_tasks
from trainer.rollout.providers import BankSkills, NoSkills, SkillAssignment, load_assignment
from trainer.rollout.summary import commonest_failure, summarise
from trainer.shop.world import World, load_world
from trainer.skills.bank import load_bank


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``evaluate``."""
    group = subparsers.add_parser("evaluate", help="evaluate a checkpoint, bare or with skills")
    commands = group.add_subparsers(dest="evaluate_command", required=True)
    for name, function, text in (
        ("plan", run_plan, "show what a run would do"),
        ("run", run_run, "play what is not yet recorded"),
        ("summarize", run_summarize, "rebuild summary.json from the traces"),
    ):
        parser = commands.add_parser(name, help=text)
        parser.add_argument("config", type=Path, nargs="+")
        parser.set_defaults(func=function)
        add_json_flag(parser)


def run_plan(args: argparse.Namespace) -> int:
    """Print each plan without playing anything."""
    return max(_plan(load_config(path, EvaluateConfig)) for path in args.config)


def _plan(config: EvaluateConfig) -> int:
    evaluation = open_evaluation(config)
    plan = evaluation.plan
    document = plan.document
    print_json(
        {
            "experiment": config.name,
            "output_dir": str(config.output_dir),
            "plan_fingerprint": plan.fingerprint,
            "task_split": document["task_split"],
            "selected_tasks": document["task_split"]["task_count"],
            "episodes": len(plan.jobs),
            "execution": evaluation.execution.to_record(),
            "resume": (config.output_dir / "manifest.json").exists(),
            "model": document["model"],
            "environment": document["environment"],
            "runtime": document["runtime"],
            "prompt": document["prompt"],
            "skills": document["skills"],
            "first_jobs": document["jobs"][:5],
        }
    )
    return 0


def run_run(args: argparse.Namespace) -> int:
    """Run or continue; exit code 1 when an episode failed for technical reasons."""
    listen_for_stop()
    return max(_run(load_config(path, EvaluateConfig)) for path in args.config)


def _run(config: EvaluateConfig) -> int:
    with exclusive(config.output_dir):
        summary = open_evaluation(config).run(config.output_dir)
    return _report(summary, config.output_dir)


def run_summarize(args: argparse.Namespace) -> int:
    """Rebuild each summary offline."""
    return max(_summarize(load_config(path, EvaluateConfig)) for path in args.config)


def _summarize(config: EvaluateConfig) -> int:
    summary = summarise(config.output_dir)
    write_json(config.output_dir / "summary.json", summary)
    return _report(summary, config.output_dir)


def _report(summary: dict[str, Any], folder: Path) -> int:
    counts = summary["counts"]
    whole = counts["completed"] == counts["requested"]
    if not whole and (why := commonest_failure(folder)):
        sys.stderr.write(f"{why}\n")  # the last line of a stage's log is its reason
    print_json({"status": "complete" if whole else "incomplete", **summary})
    return 0 if whole else EXIT_INCOMPLETE


def open_evaluation(config: EvaluateConfig) -> Evaluation:
    """World, policy, chunks and plan of a configuration."""
    world = _world(config.world)
    opened = open_policy(config.policy, world, folder=config.output_dir)
    skills = open_skills(config.skills)
    return Evaluation(
        world=world,
        policy=opened.policy,
        skills=skills,
        plan=build_plan(
            world,
            opened.policy,
            skills,
            split=config.tasks.split,
            task_ids=_tasks(config, world),
            seed=config.seed,
            repeats=config.tasks.repeats,
            max_turns=config.max_turns,
        ),
        execution=Execution(
            batch_size=config.batch_size,
            attempts=config.attempts,
            record_tokens=config.record_tokens,
            facts=opened.facts,
        ),
    )


@cache
def _world(config: WorldConfig) -> World:
    return load_world(config.profile, catalogue=config.catalogue, splits=config.splits)


def _tasks(config: EvaluateConfig, world: World) -> tuple[int, ...]:
    if config.tasks.ids is not None:
        known = set(world.split(config.tasks.split))
        for task_id in config.tasks.ids:
            if task_id not in known:
                raise InputError(
                    f"is no task of {config.tasks.split}", field="tasks.ids", value=task_id
                )
        return config.tasks.ids
    return choose_tasks(
        world.split(config.tasks.split),
        limit=config.tasks.limit,
        sample_size=config.tasks.sample_size,
        seed=config.seed,
    )


def open_skills(config: SkillsConfig) -> SkillAssignment:
    """The provider a configuration names."""
    if config.bank is None:
        return NoSkills()
    bank = load_bank(config.bank)
    if config.assignment is None:
        return BankSkills(bank, max_skills=config.max_skills)
    return load_assignment(config.assignment, bank)
