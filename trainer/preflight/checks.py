"""Each check says what it found, or raises the InputError that a run would meet later.

Checks that need what an earlier one could not read raise Missing. Nothing is drawn, played or asked
over a network. Specification: training.md §7, §9.30.
"""

from __future__ import annotations

import os
import shutil
from itertools import zip_longest
from pathlib import Path

from trainer.analyst.settings import AnalystSettings
from trainer.canonical import fingerprint
from trainer.config import PolicyConfig, TrainConfig, WorldConfig
from trainer.engines.endpoint.checkpoint import checkpoint_identity
from trainer.errors import InputError
from trainer.experiment_config import ExperimentConfig
from trainer.files import read_json
from trainer.gate.cold_start.draft import load_draft
from trainer.gate.config import ColdStartGateConfig
from trainer.gate.pool import load_pool
from trainer.grpo.tasks import read_task_data
from trainer.preflight.inputs import Inputs, need_bank, need_curriculum, need_world
from trainer.shop.world import load_world
from trainer.skills.bank import load_bank
from trainer.skills.curriculum import load_curriculum
from trainer.skills.curriculum_build import estimated_effect, is_held

MIN_FREE_BYTES = 2 * 1024**3


def world(inputs: Inputs, config: WorldConfig) -> str:
    """The profile and its catalogue can be loaded."""
    inputs.world = load_world(config.profile, catalogue=config.catalogue, splits=config.splits)
    identity = inputs.world.identity()
    return f"profile {config.profile}, catalogue {identity['catalogue_sha256'][:12]}"


def analyst(inputs: Inputs, settings: AnalystSettings) -> str:
    """Whoever analyses can work in this world, and has a key where one is needed."""
    if settings.kind == "rule_based" and need_world(inputs).language is None:
        raise InputError(
            "the rule-based analyst writes for worlds of single words",
            field="analyst.kind",
            value=settings.kind,
            remedy="Choose kind: endpoint for this profile",
        )
    chat = settings.endpoint
    if chat is not None and not os.environ.get(chat.api_key_env):
        raise InputError(
            "the environment holds no key for the analyst's server",
            field=chat.api_key_env,
            remedy="Export it; a server that asks for none takes any value",
        )
    return f"{settings.kind}" if chat is None else f"{chat.model} at {chat.base_url}"


def bank(inputs: Inputs, path: Path) -> str:
    """The skill bank is one."""
    inputs.bank = read = load_bank(path)
    inputs.facts |= {"skillbank_sha256": read.bank_sha256, "active_chunks": len(read.chunks)}
    return f"{len(read.chunks)} active chunks, hash {read.bank_sha256[:12]}"


def curriculum(inputs: Inputs, path: Path) -> str:
    """The curriculum is one, and its hash is right."""
    inputs.curriculum = read = load_curriculum(path)
    inputs.facts |= {
        "round_id": read.round_id,
        "curriculum_state_id": read.state_id,
        "skill_free_probability": read.skill_free_probability,
    }
    return f"state {read.state_id[:12]}, {len(read.entries)} chunks"


def same_bank(inputs: Inputs, config: TrainConfig) -> str:
    """The curriculum was built from this very bank."""
    frozen, mine = need_curriculum(inputs), need_bank(inputs)
    named = frozen.document["source"].get("skillbank_sha256")
    if named != mine.bank_sha256:
        raise InputError(
            f"the curriculum was built from another bank than {config.skillbank}",
            file=config.curriculum,
            field="source.skillbank_sha256",
            value=named,
            remedy=f"Build it anew from this bank, whose hash is {mine.bank_sha256}",
        )
    return "built from this bank"


def same_chunks(inputs: Inputs, config: TrainConfig) -> str:
    """Chunks of bank and curriculum are equal, in order (training.md §7.4)."""
    of_bank = [
        (chunk.skill_id, chunk.version, chunk.content, estimated_effect(chunk))
        for chunk in need_bank(inputs).chunks
    ]
    of_curriculum = [
        (entry.chunk.skill_id, entry.chunk.version, entry.chunk.content, entry.contribution)
        for entry in need_curriculum(inputs).entries
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


def contributions(inputs: Inputs, config: TrainConfig) -> str:
    """Every chunk of the curriculum has a positive effect, or is held."""
    for entry in need_curriculum(inputs).entries:
        if entry.contribution <= 0 and not is_held(entry.chunk):
            raise InputError(
                "an active chunk needs a positive contribution",
                file=config.curriculum,
                field=entry.chunk.skill_id,
                value=entry.contribution,
                remedy="Remove the chunk from the bank and build the curriculum anew",
            )
    return "every contribution is positive or held"


def effects(inputs: Inputs) -> str:
    """Every chunk of a first bank carries an effect to start from."""
    values = [estimated_effect(chunk) for chunk in need_bank(inputs).chunks]
    return f"{len(values)} chunks carry an effect to start from"


def tasks(inputs: Inputs, config: TrainConfig) -> str:
    """The training tasks are exactly the frozen train split (training.md §7.9-10)."""
    train = need_world(inputs).split("train")
    chosen = train if config.task_data is None else read_task_data(config.task_data)
    if set(chosen) != set(train):
        strange = sorted(set(chosen) ^ set(train))
        raise InputError(
            f"{len(strange)} tasks differ from the frozen train split",
            file=config.task_data,
            field="task_id",
            value=strange[:5],
            remedy="Write the file anew with `prepare-data`",
        )
    inputs.tasks = chosen
    inputs.facts["training_tasks"] = len(chosen)
    return f"{len(chosen)} tasks, ids {fingerprint(list(chosen))[:12]}"


def split(inputs: Inputs, name: str) -> str:
    """The world has the split."""
    return f"{len(need_world(inputs).split(name))} tasks in {name}"


def splits(inputs: Inputs, config: ExperimentConfig) -> str:
    """The splits are as large as the evaluations want."""
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


def policy(inputs: Inputs, config: PolicyConfig) -> str:
    """Which weights will act is known; a server is not asked."""
    if config.endpoint is None:
        return checkpoint(inputs, config.checkpoint)
    if need_world(inputs).language is not None:
        raise InputError(
            "a chat server calls functions, and this world speaks words",
            field="world.profile",
            remedy="Choose another profile",
        )
    identity = checkpoint_identity(config.checkpoint, config.endpoint)
    return f"{identity['checkpoint_id']} served as {config.endpoint.model}"


def checkpoint(inputs: Inputs, folder: Path) -> str:
    """The checkpoint is there and belongs to this catalogue."""
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


def pool(path: Path) -> str:
    """The candidate pool is one."""
    read = load_pool(path)
    return f"{len(read.current)} active chunks, {len(read.candidates)} candidates"


def draft(config: ColdStartGateConfig) -> str:
    """The draft and its bank say the same."""
    read = load_draft(config.draft_bank, config.draft, budget=config.active_skill_budget)
    return f"{len(read.chunks)} chunks, of which {read.budget} may become active"


def file(path: Path | None) -> str:
    """A file that an earlier stage writes is there."""
    if path is None:
        return "none named"
    if not path.is_file():
        raise InputError("no such file", file=path, remedy="Run the stage that writes it first")
    return str(path)


def disk(folder: Path) -> str:
    """There is room for what will be written."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if free < MIN_FREE_BYTES:
        raise InputError(
            f"only {free / 1024**3:.1f} GiB are free",
            file=existing,
            remedy=f"Free at least {MIN_FREE_BYTES / 1024**3:.0f} GiB",
        )
    return f"{free / 1024**3:.0f} GiB free"
