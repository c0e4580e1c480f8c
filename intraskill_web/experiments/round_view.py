"""Builds the round page from rows: context for the template and data for the twin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from intraskill_web.episodes.links import episodes_url
from intraskill_web.experiments.actions import buttons
from intraskill_web.experiments.button import Button
from intraskill_web.experiments.config_changes import rows as rows_of
from intraskill_web.experiments.lane import WITHOUT_GATE, LaneStage, gate_mode, lane
from intraskill_web.experiments.models import Attempt, Round
from intraskill_web.experiments.queries import status_of
from intraskill_web.experiments.round_page import (
    GateFacts,
    RoundState,
    bare_scores,
    load_data,
    load_gates,
)
from intraskill_web.experiments.states import shown_state
from intraskill_web.experiments.time_left import TimeLeft, left_of_round
from intraskill_web.experiments.took import took
from intraskill_web.experiments.waiting import Line
from intraskill_web.gates.forest import Forest, forest
from intraskill_web.gates.health import sound
from intraskill_web.gates.panel import gate_panel
from intraskill_web.monitoring.attempts.levels import SEARCHED
from intraskill_web.monitoring.attempts.logs import LogPart, read_log, tail_start
from intraskill_web.monitoring.attempts.search import search_log
from intraskill_web.monitoring.panels.base import Panel, RoundData
from intraskill_web.monitoring.panels.frontier import frontier
from intraskill_web.monitoring.panels.health import health
from intraskill_web.monitoring.panels.inclusion import inclusion
from intraskill_web.monitoring.panels.outcome import BareScore, outcome
from intraskill_web.monitoring.signals.facts import Facts
from intraskill_web.monitoring.signals.inbox import events_of
from intraskill_web.monitoring.signals.strip import Signal, round_signals
from intraskill_web.review.services import signed_off
from jobs.transitions import ACTIVE

LOG_BYTES = 16 * 1024
LOUD_BYTES = 1024 * 1024  # of the tail that is looked through for what warns
FEW_CHUNKS = 6  # rows of inclusion up to which its column has room for the gate


@dataclass(frozen=True, slots=True)
class RoundView:
    """What the view renders."""

    state: RoundState
    context: dict[str, Any]
    boxes: list[LaneStage]
    panels: dict[str, Panel]
    signals: list[Signal]
    buttons: list[Button]
    left: TimeLeft | None

    def data(self) -> dict[str, Any]:
        """The JSON twin; its first keys are those of ``round_status --json``."""
        status = status_of(self.state.round, self.state.stages, self.state.latest)
        return status | {
            "started_by": self.state.started_by or None,
            "changes": self.state.changes,
            "eta_seconds": self.left.seconds if self.left else None,
            "signals": [
                {
                    "level": s.level,
                    "kind": s.kind,
                    "title": s.title,
                    "detail": s.detail,
                    "since": s.since,
                }
                for s in self.signals
            ],
            "panels": {key: panel.table.data() for key, panel in self.panels.items()},
            "actions": [button.data() for button in self.buttons],
        }


def build(
    state: RoundState,
    line: Line | None,
    *,
    reader: Any,
    operate: bool,
    window: int | None,
    level: str = "",
) -> RoundView:
    """The whole page for ``reader``. ``window`` limits the inclusion panel to the last steps,
    ``level`` the log to lines as grave.

    ``line`` is that in which the round's stage waits; None when it does not.
    """
    round_ = state.round
    data = load_data(round_)
    gates = load_gates(round_)
    panels = _panels(data, gates, window)
    whole = inclusion(data) if window else panels.get("inclusion")
    rows = [line.row for line in whole.facts["rows"]] if whole else []
    gate = gates.of(round_)
    facts = Facts(
        data, rows, state.stages, state.attempts, gate=gate,
        signed=signed_off(round_.experiment, gate), has_next=state.has_next,
    )  # fmt: skip
    signals = round_signals(facts, events_of(round_, reader))
    boxes = lane(round_, state.stages, state.attempts, round_.settings)
    made = [] if state.has_next else buttons(
        round_.experiment, round_, state.stages, may_operate=operate
    )  # fmt: skip
    left = left_of_round(round_, state.stages)
    context = {
        "round": round_,
        "experiment": round_.experiment,
        "curriculum": getattr(round_, "curriculum", None),
        "crumbs": crumbs(round_),
        "state": state,
        "active": state.active is not None,
        "active_stage": state.active,
        "shown": shown_state(round_.state, state.active.state if state.active else None),
        "took": took(round_.started_at, round_.ended_at, state.attempts),
        "waits_for": line.of_stage(state.active) if line else "",
        "changes": rows_of(state.changes),
        "boxes": boxes,
        "buttons": made,
        "signals": signals,
        "data": data,
        "panels": panels,
        "gate": gate,
        "gate_stage": next((stage for stage in state.stages if stage.kind == "gate"), None),
        "without_gate": WITHOUT_GATE.get(gate_mode(round_.settings), ""),
        "gate_needs": any(box.needs for box in boxes if box.stage.kind == "gate"),
        "forest": _forest(round_, gates),
        "few_chunks": len(rows) <= FEW_CHUNKS,
        "analysis": next((s.outcome for s in state.stages if s.kind == "analyse"), {}),
        "previous_url": _neighbour(round_, -1) if round_.number else "",
        "next_url": _neighbour(round_, 1) if state.has_next else "",
        "now_box": next((box for box in boxes if box.css == "now"), None),
        "left": left,
        **_log(state, level),
    }
    return RoundView(state, context, boxes, panels, signals, made, left)


def crumbs(round_: Round, *more: tuple[str, str]) -> list[tuple[str, str]]:
    """Experiments / name / round, and what follows."""
    word = _("Round %(n)d") % {"n": round_.number}
    here = reverse("experiments:round", args=[round_.experiment.name, round_.number])
    return [
        (_("Experiments"), reverse("experiments:list")),
        (round_.experiment.name, reverse("experiments:detail", args=[round_.experiment.name])),
        (word, here if more else ""),
        *more,
    ]


def round_panel(data: RoundData, key: str, gates: GateFacts) -> Panel | None:
    """One panel by its key; None when there is no such panel or nothing to show."""
    return _panels(data, gates, None).get(key)


def _panels(data: RoundData, gates: GateFacts, window: int | None) -> dict[str, Panel]:
    scores = [
        BareScore(
            s.step,
            s.success,
            s.n,
            episodes_url(
                experiment=data.experiment,
                purpose="baseline" if s.step == 0 else "bare",
                arm="bare",
                round=data.round.number if s.round_id == data.round.pk else None,
            ),
        )
        for s in bare_scores(data.round)
    ]
    made = [outcome(data, scores), inclusion(data, last=window), frontier(data), health(data)]
    made.append(gate_panel(data.round, gates))
    return {panel.key: panel for panel in made if panel is not None}


def _forest(round_: Round, gates: GateFacts) -> Forest | None:
    gate = gates.of(round_)
    if gate is None or not sound(gate, gates.contributions):
        return None
    return forest(gate, gates.contributions, experiment=round_.experiment.name)


def _neighbour(round_: Round, by: int) -> str:
    return reverse("experiments:round", args=[round_.experiment.name, round_.number + by])


def _log(state: RoundState, level: str) -> dict[str, Any]:
    """The tail of the newest attempt's log, or what warns in a longer one."""
    stage = state.current
    attempt: Attempt | None = state.latest.get(stage.pk) if stage else None
    if attempt is None:
        return {"log_attempt": None}
    path = attempt.log_file
    over = attempt.state not in ACTIVE
    part: LogPart
    if level in SEARCHED:
        part = search_log(path, tail_start(path, LOUD_BYTES), level=level, over=over)
    else:
        part = read_log(path, tail_start(path, LOG_BYTES), limit=LOG_BYTES, level=level, over=over)
    return {"log_attempt": attempt, "log_stage": stage, "log": part, "level": level}
