"""From an experiment's settings to the launch of one of its rounds.

An experiment freezes its launch file and hooks; its own settings say the steps, groups, optimiser
and sampling of a round. A round keeps Megatron's state and its exports in its training folder and
goes on from the state of the round before, so it can be trained again with other settings; slime
counts steps over the whole experiment (training.md §6.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

from trainer.config_files import laid_over, load_config, parse_config, read_yaml
from trainer.engines.slime.checkpoints import first_step, latest_iteration
from trainer.engines.slime.config import SlimeConfig
from trainer.engines.slime.exports import export_of, first_step_of
from trainer.engines.slime.serving import SlimeSettings
from trainer.engines.slime.settings import PREFIX, HookSettings, read_hook_settings
from trainer.errors import InputError
from trainer.experiment_config import ExperimentConfig

# what only the embedded engine reads; slime's counterparts stand in the launch file
NOT_ON_SLIME = (
    *("threads", "train.rollout.batch_size", "train.optimiser.std_normalisation"),
    *("train.optimiser.warmup_updates", "train.optimiser.gradient_clip"),
    "train.optimiser.micro_batch",
)
LAUNCH, HOOKS = Path("start/launch.yaml"), Path("start/hooks.yaml")  # in the run folder
STATE = "megatron"  # the folder of Megatron's state, which the next round goes on from


def read_launch(path: Path) -> tuple[SlimeConfig, HookSettings]:
    """A launch file and its hooks, without the environment. Raises InputError."""
    _require_file(path, "slime.launch")
    launch = load_config(path, SlimeConfig)
    _require_file(launch.paths.hooks, "paths.custom_config")
    return launch, read_hook_settings(launch.paths.hooks)


def _require_file(path: Path, field: str) -> None:
    if not path.is_file():
        raise InputError(
            "no such configuration file",
            file=path,
            field=field,
            remedy="Name a YAML file that exists; paths are taken from the folder of the file "
            "they stand in",
        )


def settled(config: ExperimentConfig) -> ExperimentConfig:
    """The experiment as it is frozen: with what its launch file says of steps, groups, optimiser
    and sampling, where it does not say that itself; one on another engine as it is.

    Raises InputError for values that slime cannot take, or has no setting for.
    """
    if config.slime is None:
        return config
    path = config.slime.launch
    launch, hooks = read_launch(path)
    batch, adam = launch.batch, launch.optimiser
    updates, rest = divmod(batch.episodes_kept, batch.episodes_per_update)
    if rest or updates == 0:
        raise InputError(
            f"must divide the {batch.episodes_kept} episodes of a step: slime drops the rest",
            file=path,
            field="batch.global_batch_size",
            value=batch.episodes_per_update,
            remedy="Choose a divisor, or leave it out for one update a step",
        )
    filled = {
        "train": {
            "steps": launch.loop.steps_per_round,
            "rollout": {
                "groups_per_wave": batch.wave,
                "groups_kept": batch.rollout_batch_size,
                "episodes_per_group": batch.n_samples_per_prompt,
                "max_turns": hooks.max_steps,
                "full_skill_retry": hooks.full_skill_retry,
                "max_consecutive_failed_groups": hooks.max_consecutive_failed_groups,
            },
            "optimiser": {
                "learning_rate": adam.lr,
                "updates_per_step": updates,
                "std_normalisation": True,  # slime's, unless its flag says otherwise
                "clip_low": launch.algorithm.eps_clip,
                "clip_high": launch.algorithm.eps_clip_high,
                "betas": (adam.adam_beta1, adam.adam_beta2),
                "weight_decay": adam.weight_decay,
                "warmup_updates": 0,
            },
        },
        "temperature": launch.sampling.temperature,
        "max_new_tokens": launch.tokens.rollout_max_response_len,
    }
    of_launch = {**config.model_dump(), **filled, "threads": None}
    default = parse_config(of_launch, ExperimentConfig, file=path)
    said = laid_over(filled, config.model_dump(include=set(filled), exclude_unset=True))
    made = parse_config({**config.model_dump(), **said}, ExperimentConfig, file=path)
    for key in NOT_ON_SLIME:
        _, _, name = key.rpartition(".")
        if (value := _at(made, key)) != _at(default, key):
            raise InputError(
                "slime reads no such setting",
                field=key,
                value=value,
                remedy=f"Leave {name} out; what slime has is set in the launch file",
            )
    _episodes_per_update(made)
    return made.model_copy(update={"slime": config.slime.model_copy(update={"launch": LAUNCH})})


def _at(config: ExperimentConfig, key: str) -> Any:
    return attrgetter(key)(config)


def frozen_files(settings: SlimeSettings) -> dict[Path, dict[str, Any]]:
    """Launch and hooks by their place in the run folder. Paths are absolute, but for the hooks',
    which lie beside the launch, so that both can move."""
    launch, _hooks = read_launch(settings.launch)
    paths = launch.paths.model_copy(update={"custom_config": Path(HOOKS.name)})
    frozen = launch.model_copy(update={"paths": paths}).model_dump(mode="json")
    return {LAUNCH: frozen, HOOKS: read_yaml(launch.paths.hooks)}


def round_launch(
    config: ExperimentConfig,
    launch: Path,
    *,
    number: int,
    rounds: int,
    out: Path,
    before: Path | None,
    hooks: Path,
) -> SlimeConfig:
    """The launch of round ``number`` (from 0) of ``rounds``, which trains in ``out``.

    ``launch`` is the frozen file, ``before`` the training folder of the round before and ``hooks``
    the round's own. Raises InputError when a file is damaged or missing.
    """
    base = load_config(launch, SlimeConfig)
    train, groups = config.train, config.train.rollout
    save = out / STATE
    begins = base.checkpoints.load if before is None else before / STATE
    first = first_step(base) if before is None else first_step_of(before)
    changed = {
        "round_id": f"round-{number:03d}",
        "paths": {"custom_config": hooks},
        "checkpoints": {
            "save": save,
            "save_hf": out / "hf" / "step-{rollout_id}",
            "load": begins if latest_iteration(save) is None else save,
        },
        "batch": {
            "rollout_batch_size": groups.groups_kept,
            "n_samples_per_prompt": groups.episodes_per_group,
            "over_sampling_batch_size": groups.groups_per_wave,
            "global_batch_size": _episodes_per_update(config),
            "num_rollout": first + (number + 1) * train.steps,
        },
        "sampling": {"temperature": config.temperature, "seed": config.seed},
        "tokens": {"rollout_max_response_len": config.max_new_tokens},
        "algorithm": {
            "eps_clip": train.optimiser.clip_low,
            "eps_clip_high": train.optimiser.clip_high,
        },
        "optimiser": {
            "lr": train.optimiser.learning_rate,
            "weight_decay": train.optimiser.weight_decay,
            "adam_beta1": train.optimiser.betas[0],
            "adam_beta2": train.optimiser.betas[1],
        },
        "loop": {
            "steps_per_round": train.steps,
            "num_rounds": rounds,
            "resume_round": number,
            "first_step": first,
        },
    }
    return parse_config(laid_over(base.model_dump(), changed), SlimeConfig, file=launch)


def _episodes_per_update(config: ExperimentConfig) -> int:
    groups, updates = config.train.rollout, config.train.optimiser.updates_per_step
    if groups.groups_kept % updates:
        raise InputError(
            f"must divide the {groups.groups_kept} groups of a step (train.rollout.groups_kept), "
            "because a group may not straddle two updates",
            field="train.optimiser.updates_per_step",
            value=updates,
            remedy="Choose a divisor",
        )
    return groups.groups_kept // updates * groups.episodes_per_group


def round_hooks(
    config: ExperimentConfig, hooks: Mapping[str, Any], *, bank: Path, curriculum: Path, out: Path
) -> dict[str, Any]:
    """The hooks of a round that records into ``out``."""
    groups = config.train.rollout
    own = {
        "skillbank_path": str(bank),
        "curriculum_path": str(curriculum),
        "round_dir": str(out),
        "round_steps": config.train.steps,
        "full_skill_retry": groups.full_skill_retry,
        "max_consecutive_failed_groups": groups.max_consecutive_failed_groups,
    }
    if groups.max_turns is not None:
        own["max_steps"] = groups.max_turns
    return {**hooks, **{f"{PREFIX}{name}": value for name, value in own.items()}}


def from_folder(config: ExperimentConfig, folder: Path) -> ExperimentConfig:
    """A frozen experiment's settings with the whole paths of what lies in its run folder, so that
    another experiment can begin from them."""
    start, weights = config.start, folder / "start" / "checkpoint"
    if config.slime is not None:
        weights = export_of(weights)
        slime = config.slime.model_copy(update={"launch": folder / LAUNCH})
        config = config.model_copy(update={"slime": slime})
    paths = {"skillbank": folder / "start" / "skillbank.json", "checkpoint": weights}
    return config.model_copy(update={"start": start.model_copy(update=paths)})
