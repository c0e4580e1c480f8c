"""Checks and what they share: a finding each, none of them stops the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from trainer.errors import InputError
from trainer.shop.world import World
from trainer.skills.bank import SkillBank
from trainer.skills.curriculum import Curriculum


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
