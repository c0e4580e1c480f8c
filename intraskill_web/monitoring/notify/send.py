"""Sending one message now. Failures are NotSent with what the other side said."""

from __future__ import annotations

import asyncio
import json
import smtplib
import time

from django.conf import settings
from django.core.mail import EmailMessage, get_connection

from intraskill_web.monitoring.models import Channel, Delivery
from intraskill_web.monitoring.notify import signature
from intraskill_web.monitoring.notify.message import Message, message_of

TIMEOUT_S = 5.0  # for the whole exchange of a webhook
ANSWER_BYTES = 200
SMTP_BACKEND = "django.core.mail.backends.smtp.EmailBackend"


class NotSent(Exception):
    """The message did not arrive, as far as can be told; the text says why."""


def send(delivery: Delivery) -> str:
    """Send, and return what the other side answered. Raises NotSent."""
    message = message_of(delivery)
    if delivery.channel.kind == "email":
        return _mail(delivery.channel, message)
    return asyncio.run(_post(delivery, message))


def mail_problem() -> str:
    """Why no e-mail can leave here; empty when it can."""
    if settings.EMAIL_BACKEND == SMTP_BACKEND and not settings.EMAIL_HOST:
        return "EMAIL_HOST is not set"
    return ""


def recipients(channel: Channel) -> list[str]:
    """The addresses of an e-mail channel."""
    return [part.strip() for part in channel.target.split(",") if part.strip()]


def _mail(channel: Channel, message: Message) -> str:
    if problem := mail_problem():
        raise NotSent(problem)
    mail = EmailMessage(
        message.subject.replace("\n", " "),
        message.text,
        to=recipients(channel),
        headers={"Auto-Submitted": "auto-generated"},
        connection=get_connection(timeout=settings.EMAIL_TIMEOUT),
    )
    try:
        sent = mail.send()
    except (OSError, smtplib.SMTPException) as error:
        raise NotSent(_reason(error)) from error
    if not sent:
        raise NotSent("the mail server took no message")
    return "accepted by the mail server"


async def _post(delivery: Delivery, message: Message) -> str:
    """POST the signed JSON. Redirects are not followed: they would carry the body elsewhere."""
    import aiohttp  # here: only who sends needs it

    body = json.dumps(message.data, ensure_ascii=False, separators=(",", ":")).encode()
    channel = delivery.channel
    head = signature.headers(channel.secret, str(delivery.key), int(time.time()), body)
    head |= {"Content-Type": "application/json", "User-Agent": "IntraSkill"}
    limit = aiohttp.ClientTimeout(total=TIMEOUT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=limit) as session,
            session.post(channel.target, data=body, headers=head, allow_redirects=False) as answer,
        ):
            said = (await answer.content.read(ANSWER_BYTES)).decode("utf-8", errors="replace")
    except TimeoutError as error:
        raise NotSent(f"no answer within {TIMEOUT_S:g} s") from error
    except aiohttp.ClientConnectorError as error:
        raise NotSent(f"cannot connect: {error.strerror or error.os_error}") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise NotSent(_reason(error)) from error
    if not 200 <= answer.status < 300:
        raise NotSent(f"HTTP {answer.status} {said}".strip())
    return f"HTTP {answer.status}"


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".strip(": ")
