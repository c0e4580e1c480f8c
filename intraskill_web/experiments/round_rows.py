"""The rounds of an experiment as rows: bank, gate, scores, where each is and what it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from intraskill_web.core.tables import Column, Table
from intraskill_web.experiments.models import Attempt, CheckpointScore, Round, Stage
from intraskill_web.experiments.states import shown_state
from intraskill_web.experiments.took import Took, took
from intraskill_web.gates.models import GateRun
from intraskill_web.skills.models import SkillVersion
from jobs.transitions import ACTIVE


@dataclass(frozen=True, slots=True)
class RoundRow:
    """One line of the table of rounds."""

    round: Round
    bank: str
    gate: GateRun | None
    scores: Mapping[str, CheckpointScore]
    stage: str
    percent: int | None
    took: Took | None
    shown: str  # its state: what waits for its turn does not run


def round_rows(
    rounds: Sequence[Round],
    versions: Sequence[SkillVersion],
    gates: Sequence[GateRun],
    scores: Sequence[CheckpointScore],
    attempts: Sequence[Attempt],
) -> list[RoundRow]:
    """One line a round: bank before and after, gate, scores, where it is, its work. No query."""
    sizes = {version.number: version.size for version in versions}  # type: ignore[attr-defined]
    by_round = {gate.round_id: gate for gate in gates}
    measured: dict[int, dict[str, CheckpointScore]] = {}
    for score in scores:
        if score.split == "val" and score.step:
            measured.setdefault(score.round_id, {})[score.arm] = score
    tries: dict[int, list[Attempt]] = {}
    for attempt in attempts:
        tries.setdefault(attempt.stage.round_id, []).append(attempt)
    rows = []
    for item in rounds:
        stages: list[Stage] = list(item.stages.all())
        working = next((s for s in stages if s.state in ACTIVE), None)
        own = measured.get(item.pk, {})
        before, after = sizes.get(item.number), sizes.get(item.number + 1)
        bank = "" if before is None else str(before) if after is None else f"{before} → {after}"
        rows.append(
            RoundRow(
                round=item,
                bank=bank,
                gate=by_round.get(item.pk),
                scores=own,
                stage=working.kind if working else "",
                percent=working.percent if working else None,
                took=took(item.started_at, item.ended_at, tries.get(item.pk, ())),
                shown=shown_state(item.state, working.state if working else None),
            )
        )
    return rows


def rounds_table(rows: Sequence[RoundRow]) -> Table:
    """The rounds as data."""
    columns = [
        Column("round", _("Round"), "count"),
        Column("state", _("State")),
        Column("bank", _("Bank")),
        Column("bare", _("Bare success"), "rate"),
        Column("full", _("Full-skill success"), "rate"),
        Column("delta", _("Masked − bare reward"), "effect"),
        Column("seconds", _("Worked"), "seconds"),
        Column("idle_seconds", _("Paused or waiting"), "seconds"),
    ]
    return Table(
        "rounds",
        columns,
        [
            {
                "round": row.round.number,
                "state": row.round.state,
                "bank": row.bank,
                "bare": row.scores["bare"].success if "bare" in row.scores else None,
                "full": row.scores["full"].success if "full" in row.scores else None,
                "delta": row.gate.delta_mean if row.gate else None,
                "seconds": row.took.worked if row.took else None,
                "idle_seconds": row.took.whole - row.took.worked if row.took else None,
            }
            for row in rows
        ],
    )
