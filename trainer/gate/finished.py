"""A finished gate read back from ``contributions.json``: what it observed and what it made of it.

The file holds the masks and outcomes of every observation, so that own and published gates can be
fitted again without any other file. Everything in it is checked before it is used. Specification:
gate-analysis.md §§5, 8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from trainer.canonical import fingerprint
from trainer.config import GateProfile
from trainer.config_files import parse_config
from trainer.errors import InputError
from trainer.gate.artefacts import CONTRIBUTIONS_SCHEMA, without_time
from trainer.gate.cold_start.documents import CONTRIBUTIONS_SCHEMA as COLD_START_SCHEMA
from trainer.gate.folder import COLD_START_MANIFEST, MANIFEST
from trainer.gate.regression import Array
from trainer.gate.slots import Intervention, Layout, Slot
from trainer.gate.standard.estimate import Pairs
from trainer.gate.standard.judge import CONTRIBUTIONS_SCHEMA as STANDARD_SCHEMA
from trainer.gate.standard.settings import StandardSettings
from trainer.reading import Node, read_node
from trainer.skills.types import Chunk

Json = Mapping[str, Any]
PROFILES: Mapping[str, GateProfile] = {
    CONTRIBUTIONS_SCHEMA: "published",
    STANDARD_SCHEMA: "standard",
    COLD_START_SCHEMA: "published",
}


@dataclass(frozen=True, slots=True)
class FinishedGate:
    """What a finished gate observed. ``rows`` is its observations table.

    ``stored`` and ``statuses`` are its coefficients and verdicts by intervention id; ``settings``
    are the thresholds of a standard gate.
    """

    folder: Path
    profile: GateProfile
    layout: Layout
    rows: Sequence[Json]
    outcomes: tuple[str, ...]
    budget: int
    stored: Mapping[str, float]
    statuses: Mapping[str, str]
    settings: StandardSettings = field(default_factory=StandardSettings)


def load_finished(folder: Path) -> FinishedGate:
    """Read a gate's ``contributions.json``. Raises InputError when it is missing or damaged."""
    root = read_node(folder / "contributions.json")
    schema = root["schema_version"].choice(*PROFILES)
    profile = PROFILES[schema]
    contributions = list(root["contributions"])
    if schema == COLD_START_SCHEMA:
        contributions = [_of_draft(row) for row in contributions]
    table = list(root["observations_table"])
    for node, rows in (("contributions", contributions), ("observations_table", table)):
        if not rows:
            raise root[node].error("must not be empty")
    layout = _layout(contributions)
    outcomes = (*sorted(table[0]["reward_detail"].mapping()), "reward")
    for row in table:
        _check_row(row, layout.columns, outcomes, profile)
    _check_tasks(table, profile)
    return FinishedGate(
        folder=folder,
        profile=profile,
        layout=layout,
        rows=[row.mapping() for row in table],
        outcomes=outcomes,
        budget=root["active_skill_budget"].integer(least=1),
        stored={
            row["intervention_id"].text(): row["coefficient"].number() for row in contributions
        },
        statuses={row["intervention_id"].text(): row["status"].text() for row in contributions},
        settings=_settings(folder) if profile == "standard" else StandardSettings(),
    )


def require_unchanged(folder: Path) -> None:
    """Raise InputError unless the contributions are those whose hash the gate's manifest holds.

    A folder without a manifest cannot be checked. Published gates hashed the time as well.
    """
    names = [name for name in (MANIFEST, COLD_START_MANIFEST) if (folder / name).exists()]
    if not names:
        return
    manifest = read_node(folder / names[0])
    if manifest["status"].value != "complete":
        raise manifest["status"].error(
            "the gate has not ended", "continue it with: python -m trainer gate run CONFIG"
        )
    stated = manifest["output"]["contributions_sha256"]
    document = read_node(folder / "contributions.json").mapping()
    if stated.value not in (fingerprint(without_time(document)), fingerprint(document)):
        raise stated.error(
            "does not match contributions.json beside it",
            "restore the file, or run the gate again on its traces",
        )


def _of_draft(row: Node) -> Node:
    """A row of a cold-start gate in the keys of a round's: every chunk is an addition."""
    name = row["chunk_id"].text()
    same = {"intervention_id": name, "logical_chunk_id": name, "order": row["draft_order"].value}
    fixed = {"kind": "candidate", "operation": "ADD"}
    return Node({**row.mapping(), **same, **fixed}, row.file, row.name)


def _layout(rows: Sequence[Node]) -> Layout:
    """The layout as contributions tell it; texts are not among them."""
    members: dict[int, list[Node]] = {}
    interventions: dict[str, Intervention] = {}
    for row in rows:
        order, name = row["order"].integer(least=1), row["intervention_id"].text()
        if name in interventions:
            raise row["intervention_id"].error("stands twice in the file")
        members.setdefault(order, []).append(row)
        interventions[name] = Intervention(
            row["kind"].choice("current", "candidate"),
            row["operation"].choice(None, "ADD", "REWRITE"),
            row["logical_chunk_id"].text(),
            order,
            Chunk(name, name),
        )
    slots = []
    for _, family in sorted(members.items()):
        first = interventions[family[0]["intervention_id"].text()]
        names = tuple(row["intervention_id"].text() for row in family)
        for row in family:
            item = interventions[row["intervention_id"].text()]
            if item.logical_chunk_id != first.logical_chunk_id:
                raise row["order"].error("two chunks cannot share a slot")
            if (item.operation == "REWRITE") != (item is not first):
                raise row["operation"].error("a slot holds one text and rewrites of it")
        if first.logical_chunk_id != names[0]:
            raise family[0]["logical_chunk_id"].error(f"must be {names[0]}, whose slot this is")
        old = names[0] if first.kind == "current" else None
        slots.append(Slot(first.logical_chunk_id, old, names))
    return Layout(tuple(slots), interventions)


def _check_row(
    row: Node, columns: Sequence[str], outcomes: Sequence[str], profile: GateProfile
) -> None:
    row["task_id"].integer(least=0)
    row["sample_id"].integer(least=0)
    mask = list(row["mask"])
    if len(mask) != len(columns):
        raise row["mask"].error(f"must have {len(columns)} entries, one a column")
    for entry in mask:
        if entry.integer() not in (0, 1):
            raise entry.error("must be 0 or 1")
    shown = [name for name, entry in zip(columns, mask, strict=True) if entry.value]
    if sorted(item.text() for item in row["included_chunk_ids"]) != sorted(shown):
        raise row["included_chunk_ids"].error(f"must be the chunks of the mask, {shown}")
    sides = [""]
    if profile == "published" or row["bare_reward"].value is not None:
        sides.append("bare_")
    for side in sides:
        row[f"{side}reward"].number()
        detail = row[f"{side}reward_detail"]
        if sorted(detail.mapping()) != list(outcomes[:-1]):
            raise detail.error("has other reward parts than the first row")
        for part in outcomes[:-1]:
            detail[part].number()


def _check_tasks(table: Sequence[Node], profile: GateProfile) -> None:
    """A task stands once in a published table; in a standard one both rollouts of its pair do."""
    found: dict[int, set[int]] = {}
    for row in table:
        samples = found.setdefault(row["task_id"].integer(), set())
        if row["sample_id"].integer() in samples:
            raise row["sample_id"].error("this rollout of the task stands twice in the table")
        samples.add(row["sample_id"].integer())
    wanted = {0} if profile == "published" else {0, 1}
    for row in table:
        if found[row["task_id"].integer()] != wanted:
            raise row["sample_id"].error(f"a task of this gate has the rollouts {sorted(wanted)}")


def _settings(folder: Path) -> StandardSettings:
    """The thresholds that a standard gate echoed in its manifest; the defaults without one."""
    file = folder / MANIFEST
    if not file.exists():
        return StandardSettings()
    return parse_config(read_node(file)["standard"].mapping(), StandardSettings, file=file)


def scores(gate: FinishedGate, rows: Sequence[Json], *, bare: bool = False) -> Array:
    """Outcomes (n, m) of the masked or the bare rollouts of rows."""
    prefix = "bare_" if bare else ""
    return np.array(
        [
            [
                row[f"{prefix}reward"] if name == "reward" else row[f"{prefix}reward_detail"][name]
                for name in gate.outcomes
            ]
            for row in rows
        ],
        dtype=np.float64,
    )


def pairs(gate: FinishedGate) -> Pairs:
    """The pairs of a standard gate's table."""
    if gate.profile != "standard":
        raise InputError("a published gate has no pairs", file=gate.folder / "contributions.json")
    first = [row for row in gate.rows if row["sample_id"] == 0]
    second = {row["task_id"]: row for row in gate.rows if row["sample_id"] == 1}
    both = [(row, second[row["task_id"]]) for row in first]
    bare = np.full((len(both), len(gate.outcomes)), np.nan)
    known = [i for i, (row, _) in enumerate(both) if row["bare_reward"] is not None]
    if known:
        bare[known] = scores(gate, [both[i][0] for i in known], bare=True)
    return Pairs(
        task_ids=tuple(row["task_id"] for row, _ in both),
        columns=gate.layout.columns,
        outcomes=gate.outcomes,
        shown=np.array([[row["mask"] for row in pair] for pair in both], dtype=np.float64),
        scores=np.stack([scores(gate, [pair[s] for pair in both]) for s in (0, 1)], axis=1),
        bare=bare,
    )
