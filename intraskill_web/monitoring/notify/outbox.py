"""The outbox: which messages are due, who sends them, when they are tried again.

A message is claimed by a conditional update before it leaves, so of two senders one sends. A sender
that dies between claim and answer leaves the message ``unsure``; it is never repeated by itself,
because a second copy is worse than a gap that the inbox shows. A refusal or silence of the other
side is known, and tried again with the same id.
"""

from __future__ import annotations

import logging
import time
from datetime import datetime, timedelta

from django.db.models import F
from django.utils import timezone

from intraskill_web.monitoring.models import Channel, Delivery, SignalEvent
from intraskill_web.monitoring.notify.quiet import earliest
from intraskill_web.monitoring.notify.send import NotSent, send

# Seconds before the second, third … try; after the last the message has failed.
PAUSES_S = (10, 60, 300, 1800, 7200)
CLAIM_S = 120  # a claim older than this belongs to a sender that died
KEPT_ANSWER = 300
BATCH = 50
PASS_S = 10.0  # of one call; what is left waits for the next, so that signals are looked at too

logger = logging.getLogger(__name__)


def queue_messages(event: SignalEvent) -> None:
    """A message of ``event`` for every channel that wants it. Call in the event's transaction."""
    now = timezone.now()
    channels = Channel.objects.filter(enabled=True)
    if event.level == "info":
        channels = channels.filter(with_info=True)
    Delivery.objects.bulk_create(
        Delivery(event=event, channel=channel, next_at=_earliest(channel, now))
        for channel in channels
    )


def deliver_due() -> int:
    """Send what is due now; returns how many left."""
    now = timezone.now()
    dead = Delivery.objects.filter(state="sending", claimed_at__lt=now - timedelta(seconds=CLAIM_S))
    dead.update(state="unsure", done_at=now, answer="the sender ended before the answer came")
    due = Delivery.objects.filter(state="waiting", next_at__lte=now, channel__enabled=True)
    sent, begun = 0, time.monotonic()
    for delivery in due.select_related("channel", "event__round__experiment").order_by("id")[
        :BATCH
    ]:
        if time.monotonic() - begun > PASS_S:
            break
        later = _earliest(delivery.channel, timezone.now())
        if later > timezone.now():
            Delivery.objects.filter(pk=delivery.pk, state="waiting").update(next_at=later)
        elif _claim(delivery):
            sent += _try(delivery)
    return sent


def send_test(channel: Channel) -> Delivery:
    """Send a test message at once, whatever the hour; the row says what became of it."""
    now = timezone.now()
    delivery = Delivery.objects.create(
        channel=channel, next_at=now, state="sending", claimed_at=now, tries=1
    )
    try:
        _done(delivery, "sent", send(delivery))
    except NotSent as error:
        _done(delivery, "failed", str(error))
    return delivery


def send_again(delivery: Delivery) -> bool:
    """Put a message that failed, or that nobody knows of, back into the outbox."""
    rows = Delivery.objects.filter(pk=delivery.pk, state__in=("failed", "unsure"))
    return bool(rows.update(state="waiting", tries=0, next_at=timezone.now(), done_at=None))


def _claim(delivery: Delivery) -> bool:
    rows = Delivery.objects.filter(pk=delivery.pk, state="waiting")
    if not rows.update(state="sending", claimed_at=timezone.now(), tries=F("tries") + 1):
        return False  # another sender was faster
    delivery.refresh_from_db(fields=["state", "claimed_at", "tries"])
    return True


def _try(delivery: Delivery) -> bool:
    try:
        answer = send(delivery)
    except NotSent as error:
        if delivery.tries > len(PAUSES_S):
            _done(delivery, "failed", str(error))
        else:
            pause = timedelta(seconds=PAUSES_S[delivery.tries - 1])
            later = _earliest(delivery.channel, timezone.now() + pause)
            _set(delivery, state="waiting", next_at=later, answer=str(error)[:KEPT_ANSWER])
        logger.warning("signal %s: %s", delivery.key, error)
        return False
    _done(delivery, "sent", answer)
    return True


def _done(delivery: Delivery, state: str, answer: str) -> None:
    _set(delivery, state=state, done_at=timezone.now(), answer=answer[:KEPT_ANSWER])


def _set(delivery: Delivery, **fields: object) -> None:
    Delivery.objects.filter(pk=delivery.pk, state="sending").update(**fields)
    for name, value in fields.items():
        setattr(delivery, name, value)


def _earliest(channel: Channel, moment: datetime) -> datetime:
    return earliest(moment, channel.quiet_from, channel.quiet_to, channel.time_zone)
