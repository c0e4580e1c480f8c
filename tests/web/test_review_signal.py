"""A gate asks for its review until somebody signs it off."""

from __future__ import annotations

from typing import Any

from django.test import Client

from intraskill_web.gates.models import GateRun
from intraskill_web.monitoring.models import SignalEvent
from intraskill_web.monitoring.signals.evaluate import evaluate_all
from intraskill_web.review.services import Subject, add_event
from tests.web.factories import Made


def test_a_sign_off_ends_the_signal_and_its_withdrawal_opens_another(
    made: Made, operator: Any
) -> None:
    gate = GateRun.objects.get(round=made.rounds[0])
    subject = Subject(made.experiment, gate=gate)
    seen: dict[int, object] = {}

    def standing() -> list[int]:
        evaluate_all(seen)
        mine = SignalEvent.objects.filter(round=gate.round, kind="gate", closed_at=None)
        return list(mine.values_list("pk", flat=True))

    (first,) = standing()
    add_event(subject, "comment", "Looks sound", actor=operator)
    assert standing() == [first]
    add_event(subject, "sign", "", actor=operator)
    assert standing() == []
    add_event(subject, "unsign", "", actor=operator)
    (second,) = standing()
    assert second != first
    add_event(subject, "sign", "", actor=operator)
    gate.pool_sha256 = "f" * 64  # what was signed is no longer what is there
    gate.save()
    gate.round.save()
    assert len(standing()) == 1


def test_the_round_page_asks_no_longer_once_it_is_signed(
    made: Made, operator: Any, viewer_client: Client
) -> None:
    path = "/experiments/demo/rounds/0/"
    gate = GateRun.objects.get(round=made.rounds[0])
    assert "ready for review" in viewer_client.get(path).content.decode()
    add_event(Subject(made.experiment, gate=gate), "sign", "", actor=operator)
    assert "ready for review" not in viewer_client.get(path).content.decode()
