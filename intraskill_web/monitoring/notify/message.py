"""What a message says: the words of its signal, in the channel's language."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from intraskill_web.monitoring.models import Delivery, SignalEvent
from intraskill_web.monitoring.signals.words import Place, Words, words


@dataclass(frozen=True, slots=True)
class Message:
    """A subject line, a text, and the same as data."""

    subject: str
    text: str
    data: dict[str, Any]


def message_of(delivery: Delivery) -> Message:
    """The message of ``delivery``, in its channel's language."""
    with translation.override(delivery.channel.language):
        event = delivery.event
        return _test() if event is None else _message(event)


def words_of(event: SignalEvent) -> Words:
    """The words of a signal, in the language that is active."""
    place = Place(event.round.experiment.name, event.round.number)
    return words(event.kind, event.subject, event.facts, place)


def address(path: str) -> str:
    """``path`` as a reader's mail program can open it."""
    return settings.INTRASKILL_PUBLIC_URL.rstrip("/") + path


def _message(event: SignalEvent) -> Message:
    said = words_of(event)
    title = said.title.rstrip(":：")
    round_ = event.round
    place = _("%(experiment)s, round %(n)d") % {
        "experiment": round_.experiment.name, "n": round_.number,
    }  # fmt: skip
    lines = [said.title if not said.detail else f"{said.title} {said.detail}", place]
    if event.closed_at is not None:
        over = timezone.localtime(event.closed_at)
        lines.append(_("Over since %(time)s.") % {"time": f"{over:%Y-%m-%d %H:%M %Z}"})
    lines += ["", f"{said.link}: {address(said.href)}"]
    data = {
        "type": "signal.opened",
        "id": event.pk,
        "kind": event.kind,
        "subject": event.subject,
        "level": event.level,
        "experiment": round_.experiment.name,
        "round": round_.number,
        "title": title,
        "detail": said.detail,
        "facts": event.facts,
        "opened_at": event.opened_at.isoformat(),
        "closed_at": event.closed_at.isoformat() if event.closed_at else None,
        "url": address(said.href),
    }
    return Message(f"[IntraSkill] {place}: {title}", "\n".join(lines) + "\n", data)


def _test() -> Message:
    title = _("Test message")
    text = _("This channel works. Signals of the rounds will come here.")
    data = {"type": "test", "title": title, "detail": text, "url": address("/inbox/")}
    return Message(f"[IntraSkill] {title}", f"{text}\n\n{address('/inbox/')}\n", data)
