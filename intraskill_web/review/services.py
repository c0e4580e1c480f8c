"""What people may add to a review. Everything is an event with author and time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils.translation import gettext as _

from intraskill_web.core import audit
from intraskill_web.experiments.models import Experiment
from intraskill_web.gates.models import GateRun
from intraskill_web.review.models import ReviewEvent
from intraskill_web.review.state import Standing, standing
from intraskill_web.skills.models import SkillVersionChunk
from trainer.canonical import fingerprint
from trainer.errors import InputError

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

LONGEST = {"comment": 4000, "label": 40, "unlabel": 40, "sign": 1000, "unsign": 1000}


@dataclass(frozen=True, slots=True)
class Subject:
    """What is reviewed: a gate, or a chunk of an experiment by its logical id."""

    experiment: Experiment
    gate: GateRun | None = None
    skill_id: str = ""

    def __str__(self) -> str:
        if self.gate is not None:
            return f"gate of round {self.gate.round.number} ({self.gate.profile})"
        return f"chunk {self.skill_id}"

    def evidence(self) -> str:
        """What identifies the thing as it is now: a gate's result, or a chunk's newest text."""
        if self.gate is not None:
            rows = self.gate.contributions.order_by("order")
            result = list(rows.values_list("intervention_id", "coefficient", "status"))
            head = [self.gate.pool_sha256, self.gate.assignment_sha256]
            return fingerprint([*head, [list(row) for row in result]])
        newest = (
            SkillVersionChunk.objects.filter(
                version__experiment=self.experiment, revision__skill_id=self.skill_id
            )
            .order_by("-version__number")
            .values_list("revision__content_sha256", flat=True)
            .first()
        )
        return newest or ""

    def standing(self) -> Standing:
        """Labels, sign-off and remarks: one query, and one for the evidence if it is signed."""
        events = list(
            ReviewEvent.objects.filter(
                experiment=self.experiment, gate=self.gate, skill_id=self.skill_id
            ).select_related("author")
        )
        signed = any(event.kind == "sign" for event in events)
        return standing(events, self.evidence() if signed else "")


def signed_off(experiment: Experiment, gate: GateRun | None) -> bool:
    """Whether somebody signed the gate off as it is now; False where there is none."""
    if gate is None:
        return False
    now = Subject(experiment, gate=gate).standing()
    return now.signed is not None and not now.outdated


def add_event(
    subject: Subject, kind: str, text: str, *, actor: AbstractBaseUser | None = None
) -> ReviewEvent:
    """Add one event. Raises InputError for an empty or too long text, or when nothing changes."""
    text = text.strip()
    if kind not in LONGEST:
        raise InputError(_("unknown action"), field="action", value=kind)
    if not text and kind not in ("sign", "unsign"):
        raise InputError(_("write something first"), field="text")
    if len(text) > LONGEST[kind]:
        raise InputError(_("at most %(n)d characters") % {"n": LONGEST[kind]}, field="text")
    with transaction.atomic():
        now = subject.standing()
        if kind == "label" and text in now.labels:
            raise InputError(_("this label is there already"), field="text", value=text)
        if kind == "unlabel" and text not in now.labels:
            raise InputError(_("this label is not there"), field="text", value=text)
        if kind == "unsign" and now.signed is None:
            raise InputError(_("it is not signed off"), field="action")
        event = ReviewEvent.objects.create(
            experiment=subject.experiment,
            gate=subject.gate,
            skill_id=subject.skill_id,
            kind=kind,
            text=text,
            evidence=subject.evidence(),
            author_id=actor.pk if actor else None,
        )
        if subject.gate is not None and kind in ("sign", "unsign"):
            subject.gate.round.save(update_fields=["updated_at"])  # its signal is looked at again
        audit.record(
            f"review.{kind}",
            actor=actor,
            experiment=subject.experiment.name,
            subject=str(subject)[:200],
        )
    return event
