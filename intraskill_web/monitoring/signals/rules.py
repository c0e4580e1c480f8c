"""The rules of the monitoring guide: what holds now of a round, its stages, host and gate.

A finding has a kind, a subject within the round (a chunk, an attempt; empty: the round itself) and
the numbers it was judged by. Words and addresses are made elsewhere (``words.py``), in the reader's
language.
"""

from __future__ import annotations

from collections.abc import Iterator

from intraskill_web.monitoring.signals import training
from intraskill_web.monitoring.signals.facts import Facts, Finding
from jobs.transitions import DONE, State


def findings(facts: Facts) -> list[Finding]:
    """Everything that holds now."""
    return [
        *_failed(facts),
        *training.findings(facts),
        *_gate(facts),
        *_held(facts),
        *_vanished(facts),
    ]


def _failed(facts: Facts) -> Iterator[Finding]:
    latest = {attempt.stage_id: attempt for attempt in facts.attempts}
    for stage in facts.stages:
        if stage.state not in (State.FAILED, State.LOST, State.INCOMPLETE):
            continue
        attempt = latest.get(stage.pk)
        number = attempt.number if attempt else 0
        yield Finding(
            "stage",
            f"{stage.kind}/{number}",
            facts={
                "stage": stage.kind,
                "state": stage.state,
                "message": stage.message,
                "attempt": attempt.pk if attempt else None,
            },
        )


def _held(facts: Facts) -> Iterator[Finding]:
    """The next round did not begin by itself, because its preflight is red."""
    round_ = facts.data.round
    if round_.experiment.hold_reason and not facts.has_next:
        reason = round_.experiment.hold_reason
        yield Finding("held", facts={"number": round_.number + 1, "reason": reason})


def _vanished(facts: Facts) -> Iterator[Finding]:
    """A host fell silent in the middle of a stage that is not done yet, wherever it goes on."""
    kinds = {stage.pk: stage.kind for stage in facts.stages if stage.state not in DONE}
    for attempt in facts.attempts:
        if attempt.stop_reason == "vanished" and attempt.stage_id in kinds:
            kind = kinds[attempt.stage_id]
            yield Finding(
                "vanished",
                f"{kind}/{attempt.number}",
                facts={"host": attempt.host, "stage": kind, "attempt": attempt.pk},
            )


def _gate(facts: Facts) -> Iterator[Finding]:
    gate, stage = facts.gate, facts.stage("gate")
    if gate is None or (stage is not None and stage.state in ("", State.RUNNING, State.STARTING)):
        return
    if gate.observations < gate.requested:
        yield Finding("coverage", facts={"used": gate.observations, "planned": gate.requested})
    if gate.status == "complete" and not facts.signed:
        yield Finding(
            "gate",
            level="info",
            facts={"delta": gate.delta_mean, "low": gate.delta_low, "high": gate.delta_high,
                   "pairs": gate.observations},
        )  # fmt: skip
