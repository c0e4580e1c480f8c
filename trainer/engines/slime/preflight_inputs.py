"""The inputs of a round, checked against each other without a network (training.md §7).

Bank, curriculum, prompt and task data are frozen by different stages and copied by hand between
hosts; each item here names the two values that do not fit. A later item is skipped when the file it
needs could not be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainer.canonical import fingerprint
from trainer.engines.slime.checks import Check, failed, passed, require, skipped, warning
from trainer.engines.slime.settings import HookSettings
from trainer.errors import InputError
from trainer.grpo.tasks import read_split, read_task_data
from trainer.rollout.prompts import SYSTEM_PROMPT
from trainer.skills.bank import SkillBank, load_bank
from trainer.skills.curriculum import Curriculum, load_curriculum
from trainer.skills.curriculum_build import estimated_effect, is_held


@dataclass(slots=True)
class Inputs:
    """What the checks read; ``identity`` becomes part of the preflight's document."""

    checks: list[Check] = field(default_factory=list)
    identity: dict[str, Any] = field(default_factory=dict)


def check_inputs(
    settings: HookSettings, root: Path, *, tasks: Path, split_file: Path | None
) -> Inputs:
    """Check bank, curriculum, prompt and tasks. Paths of the settings are anchored at ``root``."""
    inputs = Inputs()
    curriculum = _load(
        inputs, "inputs.curriculum", load_curriculum, root / settings.curriculum_path
    )
    bank = _load(inputs, "inputs.skillbank", load_bank, root / settings.skillbank_path)
    if curriculum is not None and bank is not None:
        inputs.checks += _bank_fits(bank, curriculum)
    if curriculum is not None:
        inputs.checks.append(_contributions(curriculum))
        inputs.identity |= {
            "round_id": curriculum.round_id,
            "curriculum_state_id": curriculum.state_id,
            "active_chunks": len(curriculum.entries),
            "skill_free_probability": curriculum.skill_free_probability,
        }
    if bank is not None:
        inputs.identity["skillbank_sha256"] = bank.bank_sha256
    inputs.checks.append(_prompt(settings, root))
    inputs.checks += _tasks(inputs, settings, tasks, split_file)
    inputs.identity["episode_concurrency"] = settings.episode_concurrency
    return inputs


def _load(inputs: Inputs, name: str, load: Any, path: Path) -> Any:
    try:
        value = load(path)
    except InputError as error:
        inputs.checks.append(failed(name, str(error), error.remedy or "restore the frozen file"))
        return None
    inputs.checks.append(passed(name, str(path)))
    return value


def _bank_fits(bank: SkillBank, curriculum: Curriculum) -> Iterator[Check]:
    source = curriculum.document["source"].get("skillbank_sha256")
    yield require(
        "inputs.same_bank",
        bank.bank_sha256 == source,
        f"bank {bank.bank_sha256[:12]}, curriculum built from {str(source)[:12]}",
        "the curriculum was built from another bank: build it again",
    )
    try:
        wanted = [
            (chunk.skill_id, chunk.version, chunk.content, estimated_effect(chunk))
            for chunk in bank.chunks
        ]
    except InputError as error:
        yield failed("inputs.same_chunks", str(error), error.remedy or "repair the bank")
        return
    found = [
        (entry.chunk.skill_id, entry.chunk.version, entry.chunk.content, entry.contribution)
        for entry in curriculum.entries
    ]
    yield require(
        "inputs.same_chunks",
        wanted == found,
        f"{len(wanted)} active chunks in the bank, {len(found)} in the curriculum",
        "ids, versions, texts, effects and their order must be equal: build the curriculum again",
    )


def _contributions(curriculum: Curriculum) -> Check:
    low = [
        entry.chunk.skill_id
        for entry in curriculum.entries
        if entry.contribution <= 0 and not is_held(entry.chunk)
    ]
    return require(
        "inputs.contributions",
        not low,
        "every contribution is above 0" if not low else f"not above 0: {', '.join(low)}",
        "remove these chunks from the bank",
    )


def _prompt(settings: HookSettings, root: Path) -> Check:
    if settings.system_prompt_file is None:
        return passed("inputs.system_prompt", "the built-in prompt")
    path = root / settings.system_prompt_file
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return failed("inputs.system_prompt", f"{path}: {error}", "point to a UTF-8 text file")
    if not text.strip():
        return failed("inputs.system_prompt", f"{path} is empty", "write the prompt")
    if text.rstrip() != SYSTEM_PROMPT.rstrip():
        return warning(
            "inputs.system_prompt",
            f"{path}: hash {fingerprint(text.rstrip())[:12]}, evaluations use "
            f"{fingerprint(SYSTEM_PROMPT.rstrip())[:12]}",
            "training and evaluation should read one prompt: use the built-in one",
        )
    return passed("inputs.system_prompt", f"{path}: the prompt of the evaluations")


def _tasks(
    inputs: Inputs, settings: HookSettings, tasks: Path, split_file: Path | None
) -> Iterator[Check]:
    frozen: tuple[tuple[int, ...], bool | None] | None = None
    if split_file is None:
        yield skipped("inputs.split", "no split file named", "set paths.split_file")
    else:
        try:
            identity, task_ids = read_split(split_file, "train")
        except InputError as error:
            yield failed("inputs.split", str(error), error.remedy or "restore the split file")
        else:
            frozen = (task_ids, identity["persona"])
            yield passed("inputs.split", f"{len(frozen[0])} train tasks in {split_file}")
    if frozen is not None:
        yield require(
            "inputs.persona",
            frozen[1] is True and settings.environment_persona,
            f"persona of the split {frozen[1]}, of the hooks {settings.environment_persona}",
            "set shopsim_environment_persona: true and use a persona split",
        )
    try:
        ids = read_task_data(tasks)
    except InputError as error:
        yield failed("inputs.tasks", str(error), error.remedy or "run prepare-data again")
        return
    inputs.identity["training_tasks"] = len(ids)
    yield passed("inputs.tasks", f"{len(ids)} tasks in {tasks}")
    if frozen is not None:
        missing, extra = set(frozen[0]) - set(ids), set(ids) - set(frozen[0])
        yield require(
            "inputs.task_ids",
            not missing and not extra,
            f"{len(missing)} frozen tasks missing, {len(extra)} unknown"
            + (f", e.g. {min(missing | extra)}" if missing | extra else ""),
            "run prepare-data again",
        )
