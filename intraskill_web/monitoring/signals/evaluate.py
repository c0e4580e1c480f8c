"""From rules to the inbox: a row when a finding begins to hold, closed when it ends.

Looking twice changes nothing, and two that look at once open one row (a database constraint), so
the watcher may be killed and started at any moment. A row and the messages about it are written in
one transaction: either both exist or neither.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import Max, Q
from django.utils import timezone

from intraskill_web.experiments.models import Round
from intraskill_web.experiments.round_page import (
    load_data,
    load_gates,
    load_state,
    quick_token,
)
from intraskill_web.monitoring.inclusion import inclusion_rows
from intraskill_web.monitoring.models import SignalEvent
from intraskill_web.monitoring.notify.outbox import queue_messages
from intraskill_web.monitoring.signals import training
from intraskill_web.monitoring.signals.facts import Facts, Finding
from intraskill_web.monitoring.signals.rules import findings
from intraskill_web.review.services import signed_off
from jobs.transitions import RoundState, State

logger = logging.getLogger(__name__)
RENEWED = frozenset({"held"})  # its reason is that of now, not of the onset
LOOK_BACK = timedelta(hours=24)  # a round that ended while nobody watched is still looked at


def watched_rounds() -> Iterable[Round]:
    """Rounds that work here, ended lately, or have an open signal. Imported ones have no attempts
    and are not watched.
    """
    lately = timezone.now() - LOOK_BACK
    return (
        Round.objects.annotate(moved=Max("stages__updated_at"))
        .filter(
            Q(state__in=(RoundState.RUNNING, RoundState.STOPPING))
            | Q(moved__gte=lately)
            | Q(signal_events__closed_at__isnull=True, signal_events__isnull=False)
        )
        .filter(stages__attempts__isnull=False)
        .select_related("experiment")
        .distinct()
    )


def evaluate_all(seen: dict[int, object] | None = None) -> list[SignalEvent]:
    """Look at every watched round; returns what opened.

    ``seen`` remembers what a round was like at the last look: one that stands still and does not
    train has nothing new to say.
    """
    opened: list[SignalEvent] = []
    for round_ in watched_rounds():
        token = quick_token(round_.experiment.name, round_.number)
        if seen is not None and seen.get(round_.pk) == token and not _trains(round_):
            continue
        try:
            opened += evaluate(round_)
        except (ValueError, KeyError, OSError):
            logger.exception("signals of %s", round_)  # a damaged file silences no other round
        if seen is not None:
            seen[round_.pk] = token
    return opened


def _trains(round_: Round) -> bool:
    """Whether time alone can open a signal: no step for too long."""
    working = round_.state == RoundState.RUNNING
    return working and round_.stages.filter(kind="train", state=State.RUNNING).exists()


def evaluate(round_: Round) -> list[SignalEvent]:
    """Bring the inbox up to date with one round; returns what opened."""
    facts = load_facts(round_)
    found = {item.key: item for item in findings(facts)}
    train = facts.stage("train")
    trained = train is not None and train.state == State.SUCCEEDED
    known = list(SignalEvent.objects.filter(round=round_))
    standing = {(e.kind, e.subject): e for e in known if e.closed_at is None}
    ever = {(e.kind, e.subject) for e in known}
    opened = []
    for key, item in found.items():
        over = trained and item.kind in training.KINDS
        if item.kind in RENEWED and key in standing and standing[key].facts != item.facts:
            SignalEvent.objects.filter(pk=standing[key].pk).update(facts=dict(item.facts))
        if key in standing or (over and key in ever):
            continue
        if event := _open(round_, item):
            opened.append(event)
            standing[key] = event
    ended = [
        event.pk
        for key, event in standing.items()
        if key not in found or (trained and event.kind in training.KINDS)
    ]
    SignalEvent.objects.filter(pk__in=ended, closed_at=None).update(closed_at=timezone.now())
    return opened


def load_facts(round_: Round) -> Facts:
    """What the rules look at, from rows; cards also from the analyst's file while it works."""
    state = load_state(round_.experiment.name, round_.number)
    data = load_data(state.round, episodes=False)
    curriculum = getattr(state.round, "curriculum", None)
    rows = []
    if curriculum is not None:
        targets = {chunk["skill_id"]: float(chunk["rho"]) for chunk in curriculum.chunks}
        rows = inclusion_rows(data.series, curriculum.q, targets)
    gate = load_gates(state.round).of(state.round)
    signed = signed_off(state.round.experiment, gate)
    return Facts(
        data, rows, state.stages, state.attempts, gate=gate, signed=signed,
        eligible=eligible_cards(state.round), has_next=state.has_next,
    )  # fmt: skip


def eligible_cards(round_: Round) -> int | None:
    """Cards fit for consolidation: the summary's count, else of the file; None without either."""
    summary = round_.stages.filter(kind="analyse", state=State.SUCCEEDED).first()
    if summary is not None:
        count = summary.outcome.get("eligible_cards")
        return None if count is None else int(count)
    file = round_.folder / "analysis" / "failure_cards.jsonl"
    try:
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    cards = [json.loads(line) for line in lines if line.endswith("\n") and line.strip()]
    return sum(bool(card.get("eligible_for_consolidation")) for card in cards)


def _open(round_: Round, item: Finding) -> SignalEvent | None:
    """The row and its messages; None when another watcher was faster."""
    try:
        with transaction.atomic():
            event = SignalEvent.objects.create(
                round=round_,
                kind=item.kind,
                subject=item.subject,
                level=item.level,
                facts=dict(item.facts),
            )
            queue_messages(event)
    except IntegrityError:
        return None
    return event
