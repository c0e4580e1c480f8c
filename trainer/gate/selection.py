"""The published selection rule: rewrite winners, then strictly positive, then the best few.

It looks at point estimates only and admits a useless chunk half of the time; the ``standard``
profile asks for evidence instead. Specification: gate-analysis.md §7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from trainer.gate.slots import Layout
from trainer.skills.types import Chunk

Status = Literal[
    "selected",
    "held",
    "retired",
    "rewrite_loser",
    "non_positive",
    "budget_excluded",
    "not_adopted",
]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one version. ``rank`` is 1 for the best slot winner, None for a loser.

    ``effect`` is what the next curriculum shall use: the coefficient, or its shrunk value.
    """

    intervention_id: str
    coefficient: float
    effect: float
    rank: int | None
    status: Status


@dataclass(frozen=True, slots=True)
class Selection:
    """The verdicts in column order and the versions of the next bank in prompt order."""

    verdicts: Mapping[str, Verdict]
    winners: Mapping[str, str]
    selected: tuple[str, ...]


def select(layout: Layout, coefficients: Mapping[str, float], budget: int) -> Selection:
    """Apply the published rule to the reward coefficients of all versions."""
    winners = {slot.slot_id: best_version(slot.versions, coefficients) for slot in layout.slots}
    ranked = sorted(winners.values(), key=lambda version: (-coefficients[version], version))
    kept = [version for version in ranked if coefficients[version] > 0][:budget]
    verdicts: dict[str, Verdict] = {}
    for name, intervention in layout.interventions.items():
        value = coefficients[name]
        status: Status
        if name not in ranked:
            status = "rewrite_loser"
        elif name in kept:
            status = "selected"
        elif intervention.kind == "current":
            status = "retired"
        else:
            status = "budget_excluded" if value > 0 else "non_positive"
        rank = ranked.index(name) + 1 if name in ranked else None
        verdicts[name] = Verdict(name, value, value, rank, status)
    return Selection(verdicts, winners, in_prompt_order(layout, kept))


def best_version(versions: tuple[str, ...], coefficients: Mapping[str, float]) -> str:
    """The version with the largest coefficient; the earlier one, hence the old one, on a tie."""
    return max(versions, key=lambda version: coefficients[version])


def in_prompt_order(layout: Layout, versions: list[str]) -> tuple[str, ...]:
    """Versions in the order of their slots: prompts never follow the contribution."""

    def place(version: str) -> tuple[int, str]:
        intervention = layout.interventions[version]
        return intervention.order, intervention.logical_chunk_id

    return tuple(sorted(versions, key=place))


def next_chunks(layout: Layout, selection: Selection) -> list[Chunk]:
    """The chunks of the next bank: winners under their logical id, with what the gate found."""
    chunks = []
    for version in selection.selected:
        intervention, verdict = layout.interventions[version], selection.verdicts[version]
        metadata = {
            **intervention.chunk.metadata,
            "validation_result": verdict.status,
            "estimated_effect": verdict.effect,
            "contribution_rank": verdict.rank,
            "selected_intervention_id": version,
        }
        chunks.append(
            Chunk(
                intervention.logical_chunk_id,
                intervention.chunk.content,
                intervention.chunk.version,
                metadata,
            )
        )
    return chunks
