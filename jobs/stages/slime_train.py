"""Training on slime: the round's own launch and hooks, and the job that they start."""

from __future__ import annotations

import shutil

import yaml

from jobs.launchers.ray_left import state_file
from jobs.layout import Command, Part, RoundPlan
from trainer.config_files import read_yaml
from trainer.engines.slime.experiment import STATE, round_hooks, round_launch
from trainer.files import write_text

PROGRAM = ("-m", "jobs.launchers.slime_round")


def prepare(plan: RoundPlan) -> None:
    """Write the round's hooks, and delete the state that no round goes on from any more.

    Of Megatron's state, many times the size of the weights, this round's and the one it begins from
    stay; exports are kept.
    """
    own = round_hooks(
        plan.config,
        read_yaml(plan.start_hooks),
        bank=plan.bank,
        curriculum=plan.curriculum,
        out=plan.folder / "train",
    )
    write_text(plan.hooks, yaml.safe_dump(own, sort_keys=False, allow_unicode=True))
    if plan.previous and plan.previous.previous:
        shutil.rmtree(plan.previous.previous.folder / "train" / STATE, ignore_errors=True)


def commands(plan: RoundPlan) -> tuple[Command, ...]:
    """One command, which follows the job and publishes the checkpoint."""
    folder = plan.folder / "train"
    launch = round_launch(
        plan.config,
        plan.start_launch,
        number=plan.number,
        rounds=plan.rounds,
        out=folder,
        before=plan.previous.folder / "train" if plan.previous else None,
        hooks=plan.hooks,
    )
    part = Part("train", folder, launch, plan.config.train.steps)
    state = state_file(plan.folder, "train")
    arguments = ("--checkpoint", str(plan.checkpoint), "--state", str(state))
    return (Command("train", arguments, (part,), PROGRAM),)
