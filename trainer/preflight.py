"""What can be known to go wrong before anything is spent: offline checks of a configuration.

Each check either says what it found or raises the InputError that a run would meet later. Checks
that need what an earlier one could not read are marked as such. "Ready" speaks of the inputs only,
not of the machine. Specification: training.md §7, §9.30.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from trainer.canonical import fingerprint
from trainer.config import (
    AnalystConfig,
    EvaluateConfig,
    ExperimentConfig,
    TrainConfig,
    WorldConfig,
)
from trainer.errors import InputError
from trainer.files import read_json
from trainer.gate.config import GateConfig
from trainer.gate.pool import load_pool
from trainer.grpo.tasks import read_task_data
from trainer.shop.world import World, load_world
from trainer.skills.bank import SkillBank, load_bank
from trainer.skills.curriculum import Curriculum, estimated_effect, is_held, load_curriculum

SCOPE = "offline_inputs_only"
MIN_FREE_BYTES = 2 * 1024**3


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. ``detail`` is what was found, ``remedy`` what to do when it is not ok."""

    name: str
    ok: bool
    detail: str
    remedy: str | None = None

    def to_record(self) -> dict[str, Any]:
        """The finding as ``check --json`` prints it."""
        return {"name": self.name, "ok": self.ok, "detail": self.detail, "remedy": self.remedy}


class Missing(Exception):
    """An earlier check could not provide what this one needs."""


@dataclass(slots=True)
class Inputs:
    """What the checks read, filled by one and used by the next."""

    world: World | None = None
    bank: SkillBank | None = None
    curriculum: Curriculum | None = None
    tasks: tuple[int, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    errors: list[InputError] = field(default_factory=list)


NamedCheck = tuple[str, Callable[[Inputs], str]]


def run_checks(checks: Iterable[NamedCheck], inputs: Inputs) -> list[Check]:
    """Carry out the checks in order; none of them stops the others."""
    findings = []
    for name, function in checks:
        try:
            findings.append(Check(name, True, function(inputs)))
        except InputError as error:
            inputs.errors.append(error)
            findings.append(Check(name, False, str(error), error.remedy))
        except Missing as missing:
            findings.append(Check(name, False, f"not checked: needs {missing}"))
    return findings


def training_checks(config: TrainConfig) -> list[NamedCheck]:
    """The checks of a training round."""
    return [
        ("world", lambda inputs: _world(inputs, config.world)),
        ("skillbank", lambda inputs: _bank(inputs, config.skillbank)),
        ("curriculum", lambda inputs: _curriculum(inputs, config.curriculum)),
        ("curriculum_of_bank", lambda inputs: _same_bank(inputs, config)),
        ("curriculum_chunks", lambda inputs: _same_chunks(inputs, config)),
        ("contributions", lambda inputs: _contributions(inputs, config)),
        ("tasks", lambda inputs: _tasks(inputs, config)),
        ("checkpoint", lambda inputs: _checkpoint(inputs, config.policy.checkpoint)),
        ("disk", lambda inputs: _disk(config.output_dir)),
    ]


def evaluation_checks(config: EvaluateConfig) -> list[NamedCheck]:
    """The checks of an evaluation."""
    checks: list[NamedCheck] = [
        ("world", lambda inputs: _world(inputs, config.world)),
        ("split", lambda inputs: _split(inputs, config.tasks.split)),
        ("checkpoint", lambda inputs: _checkpoint(inputs, config.policy.checkpoint)),
        ("disk", lambda inputs: _disk(config.output_dir)),
    ]
    if config.skills.bank is not None:
        bank = config.skills.bank
        checks.insert(1, ("skillbank", lambda inputs: _bank(inputs, bank)))
    return checks


def analyst_checks(config: AnalystConfig) -> list[NamedCheck]:
    """The checks of an analysis."""
    return [
        ("skillbank", lambda inputs: _bank(inputs, config.skillbank)),
        ("training_round", lambda inputs: _file(config.training_dir / "groups.jsonl")),
        ("ledger_history", lambda inputs: _file(config.ledger_history)),
        ("disk", lambda inputs: _disk(config.output_dir)),
    ]


def gate_checks(config: GateConfig) -> list[NamedCheck]:
    """The checks of a gate, as far as nothing needs to be drawn or played."""
    return [
        ("world", lambda inputs: _world(inputs, config.world)),
        ("split", lambda inputs: _split(inputs, config.split)),
        ("candidate_pool", lambda inputs: _pool(config.candidate_pool)),
        ("bare_run", lambda inputs: _file(config.bare_run / "manifest.json")),
        ("checkpoint", lambda inputs: _checkpoint(inputs, config.policy.checkpoint)),
        ("disk", lambda inputs: _disk(config.output_dir)),
    ]


def experiment_checks(config: ExperimentConfig) -> list[NamedCheck]:
    """The checks of a whole experiment, before its first round."""
    return [
        ("world", lambda inputs: _world(inputs, config.world)),
        ("splits", lambda inputs: _splits(inputs, config)),
        ("skillbank", lambda inputs: _bank(inputs, config.start.skillbank)),
        ("effects", _effects),
        ("checkpoint", lambda inputs: _checkpoint(inputs, config.start.checkpoint)),
    ]


def require_training(config: TrainConfig) -> Inputs:
    """What a training round reads, checked. Raises the first problem as InputError."""
    inputs = Inputs()
    run_checks(training_checks(config), inputs)
    if inputs.errors:
        raise inputs.errors[0]
    return inputs


def _world(inputs: Inputs, config: WorldConfig) -> str:
    inputs.world = load_world(config.profile, catalogue=config.catalogue)
    identity = inputs.world.identity()
    return f"profile {config.profile}, catalogue {identity['catalogue_sha256'][:12]}"


def _bank(inputs: Inputs, path: Path) -> str:
    inputs.bank = bank = load_bank(path)
    inputs.facts |= {"skillbank_sha256": bank.bank_sha256, "active_chunks": len(bank.chunks)}
    return f"{len(bank.chunks)} active chunks, hash {bank.bank_sha256[:12]}"


def _curriculum(inputs: Inputs, path: Path) -> str:
    inputs.curriculum = curriculum = load_curriculum(path)
    inputs.facts |= {
        "round_id": curriculum.round_id,
        "curriculum_state_id": curriculum.state_id,
        "skill_free_probability": curriculum.skill_free_probability,
    }
    return f"state {curriculum.state_id[:12]}, {len(curriculum.entries)} chunks"


def _same_bank(inputs: Inputs, config: TrainConfig) -> str:
    bank, curriculum = need_bank(inputs), need_curriculum(inputs)
    named = curriculum.document["source"].get("skillbank_sha256")
    if named != bank.bank_sha256:
        raise InputError(
            f"the curriculum was built from another bank than {config.skillbank}",
            file=config.curriculum,
            field="source.skillbank_sha256",
            value=named,
            remedy=f"Build it anew from this bank, whose hash is {bank.bank_sha256}",
        )
    return "built from this bank"


def _same_chunks(inputs: Inputs, config: TrainConfig) -> str:
    bank, curriculum = need_bank(inputs), need_curriculum(inputs)
    of_bank = [
        (chunk.skill_id, chunk.version, chunk.content, estimated_effect(chunk))
        for chunk in bank.chunks
    ]
    of_curriculum = [
        (entry.chunk.skill_id, entry.chunk.version, entry.chunk.content, entry.contribution)
        for entry in curriculum.entries
    ]
    if of_bank != of_curriculum:
        differing = [
            (mine or theirs)[0]
            for mine, theirs in zip_longest(of_bank, of_curriculum)
            if mine != theirs
        ]
        raise InputError(
            "chunks differ from those of the bank in id, version, text, effect or order",
            file=config.curriculum,
            field="chunks",
            value=differing,
            remedy="Build the curriculum anew from the bank",
        )
    return f"{len(of_bank)} chunks equal those of the bank, in order"


def _contributions(inputs: Inputs, config: TrainConfig) -> str:
    curriculum = need_curriculum(inputs)
    for entry in curriculum.entries:
        if entry.contribution <= 0 and not is_held(entry.chunk):
            raise InputError(
                "an active chunk needs a positive contribution",
                file=config.curriculum,
                field=entry.chunk.skill_id,
                value=entry.contribution,
                remedy="Remove the chunk from the bank and build the curriculum anew",
            )
    return "every contribution is positive or held"


def _effects(inputs: Inputs) -> str:
    effects = [estimated_effect(chunk) for chunk in need_bank(inputs).chunks]
    return f"{len(effects)} chunks carry an effect to start from"


def _tasks(inputs: Inputs, config: TrainConfig) -> str:
    train = need_world(inputs).split("train")
    tasks = train if config.task_data is None else read_task_data(config.task_data)
    if set(tasks) != set(train):
        strange = sorted(set(tasks) ^ set(train))
        raise InputError(
            f"{len(strange)} tasks differ from the frozen train split",
            file=config.task_data,
            field="task_id",
            value=strange[:5],
            remedy="Write the file anew with `prepare-data`",
        )
    inputs.tasks = tasks
    inputs.facts["training_tasks"] = len(tasks)
    return f"{len(tasks)} tasks, ids {fingerprint(list(tasks))[:12]}"


def _split(inputs: Inputs, name: str) -> str:
    return f"{len(need_world(inputs).split(name))} tasks in {name}"


def _splits(inputs: Inputs, config: ExperimentConfig) -> str:
    world = need_world(inputs)
    sizes = {name: len(world.split(name)) for name in ("train", "val", "test")}
    for wanted, name in (
        (config.evaluation.bare_tasks, "val"),
        (config.evaluation.full_tasks, "val"),
        (config.evaluation.test_tasks, "test"),
    ):
        if wanted is not None and wanted > sizes[name]:
            raise InputError(
                f"the {name} split has only {sizes[name]} tasks",
                field="evaluation",
                value=wanted,
                remedy="Ask for fewer",
            )
    return ", ".join(f"{count} {name}" for name, count in sizes.items())


def _checkpoint(inputs: Inputs, folder: Path) -> str:
    record = read_json(folder / "checkpoint.json")
    bound = record.get("catalogue_sha256")
    catalogue = need_world(inputs).identity()["catalogue_sha256"]
    if bound != catalogue:
        raise InputError(
            f"the checkpoint was made for another catalogue than {catalogue}",
            file=folder / "checkpoint.json",
            field="catalogue_sha256",
            value=bound,
            remedy="Use the checkpoint that belongs to this world",
        )
    return f"bound to this catalogue, {record.get('checkpoint_id', 'without an id')}"


def _pool(path: Path) -> str:
    pool = load_pool(path)
    return f"{len(pool.current)} active chunks, {len(pool.candidates)} candidates"


def _file(path: Path | None) -> str:
    if path is None:
        return "none named"
    if not path.is_file():
        raise InputError("no such file", file=path, remedy="Run the stage that writes it first")
    return str(path)


def _disk(folder: Path) -> str:
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if free < MIN_FREE_BYTES:
        raise InputError(
            f"only {free / 1024**3:.1f} GiB are free",
            file=existing,
            remedy=f"Free at least {MIN_FREE_BYTES / 1024**3:.0f} GiB",
        )
    return f"{free / 1024**3:.0f} GiB free"


def need_world(inputs: Inputs) -> World:
    """The world, once it was read. Raises Missing."""
    if inputs.world is None:
        raise Missing("the world")
    return inputs.world


def need_bank(inputs: Inputs) -> SkillBank:
    """The bank, once it was read. Raises Missing."""
    if inputs.bank is None:
        raise Missing("the skill bank")
    return inputs.bank


def need_curriculum(inputs: Inputs) -> Curriculum:
    """The curriculum, once it was read. Raises Missing."""
    if inputs.curriculum is None:
        raise Missing("the curriculum")
    return inputs.curriculum
