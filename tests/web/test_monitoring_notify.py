"""Messages about signals against a real receiver and Django's outbox: once, signed, tried again,
not in quiet hours, and never twice after a kill.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from datetime import time as clock
from pathlib import Path

import pytest
from django.conf import settings
from django.core import mail
from django.utils import timezone

from intraskill_web.monitoring.models import Channel, Delivery, SignalEvent
from intraskill_web.monitoring.notify import outbox, signature
from intraskill_web.monitoring.notify.quiet import earliest
from intraskill_web.monitoring.signals.evaluate import evaluate
from tests.web.factories import Made
from tests.web.receiver import receiver


def webhook(url: str, **fields: object) -> Channel:
    return Channel.objects.create(
        kind="webhook", target=url, secret=signature.new_secret(), **fields
    )


def test_a_webhook_gets_each_signal_once_and_can_check_the_signature(made: Made) -> None:
    with receiver() as hook:
        channel = webhook(hook.url)
        evaluate(made.rounds[0])
        evaluate(made.rounds[0])
        assert outbox.deliver_due() == 1
        assert outbox.deliver_due() == 0
        (got,) = hook.got
    event = SignalEvent.objects.get(round=made.rounds[0])
    assert got.data["type"] == "signal.opened"
    assert (got.data["id"], got.data["kind"], got.data["round"]) == (event.pk, "gate", 0)
    assert got.data["url"].endswith("/experiments/demo/rounds/0/gate/")
    head = got.headers
    stamp = int(head["webhook-timestamp"])
    assert abs(stamp - time.time()) < 60
    given = (head["webhook-id"], stamp, got.body, head["webhook-signature"])
    assert signature.verify(channel.secret, *given)
    assert not signature.verify(signature.new_secret(), *given)
    assert not signature.verify(channel.secret, given[0], stamp, got.body + b" ", given[3])
    delivery = Delivery.objects.get()
    assert (delivery.state, str(delivery.key), delivery.tries) == ("sent", given[0], 1)


def test_the_signature_is_that_of_the_specification() -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = b'{"test": 2432232314}'
    made = signature.signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert made == "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_refused_message_is_tried_again_with_the_same_id_and_then_given_up(made: Made) -> None:
    with receiver(500) as hook:
        webhook(hook.url)
        evaluate(made.rounds[0])
        for _try in range(len(outbox.PAUSES_S) + 3):
            outbox.deliver_due()
            Delivery.objects.update(next_at=timezone.now())
        assert len(hook.got) == len(outbox.PAUSES_S) + 1
        assert len({got.headers["webhook-id"] for got in hook.got}) == 1
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.answer) == ("failed", "HTTP 500")


def test_between_two_tries_there_is_a_growing_pause(made: Made) -> None:
    with receiver(503, 503, 200) as hook:
        webhook(hook.url)
        evaluate(made.rounds[0])
        pauses = []
        for _try in range(2):
            outbox.deliver_due()
            delivery = Delivery.objects.get()
            pauses.append((delivery.next_at - timezone.now()).total_seconds())
            assert outbox.deliver_due() == 0
            Delivery.objects.update(next_at=timezone.now())
        assert outbox.deliver_due() == 1
    assert [round(p) for p in pauses] == list(outbox.PAUSES_S[:2])


def test_silence_ends_after_the_time_limit(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("intraskill_web.monitoring.notify.send.TIMEOUT_S", 0.3)
    with receiver(None) as hook:
        hook.silence_s = 1.0
        webhook(hook.url)
        evaluate(made.rounds[0])
        begun = time.monotonic()
        assert outbox.deliver_due() == 0
        assert time.monotonic() - begun < 0.9
    assert Delivery.objects.get().answer == "no answer within 0.3 s"


def test_slow_receivers_do_not_hold_the_watcher_for_long(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("intraskill_web.monitoring.notify.outbox.PASS_S", 0.3)
    monkeypatch.setattr("intraskill_web.monitoring.notify.send.TIMEOUT_S", 0.2)
    with receiver(None) as hook:
        hook.silence_s = 0.5
        for number in range(6):
            webhook(f"{hook.url}/{number}")
        evaluate(made.rounds[0])
        outbox.deliver_due()
        first = Delivery.objects.filter(tries=1).count()
        assert 1 <= first < 6
        outbox.deliver_due()
        assert Delivery.objects.filter(tries=1).count() > first


def test_a_redirect_is_not_followed(made: Made) -> None:
    with receiver(307) as hook:
        webhook(hook.url)
        evaluate(made.rounds[0])
        outbox.deliver_due()
        assert [got.path for got in hook.got] == ["/hook"]
    assert Delivery.objects.get().answer.startswith("HTTP 307")


def test_nobody_at_the_other_side_is_an_answer_too(made: Made) -> None:
    webhook("http://127.0.0.1:9/hook")
    evaluate(made.rounds[0])
    assert outbox.deliver_due() == 0
    assert Delivery.objects.get().answer.startswith("cannot connect")


def test_an_e_mail_says_what_where_and_since_when(made: Made) -> None:
    Channel.objects.create(kind="email", target="ada@example.org, bob@example.org")
    evaluate(made.rounds[0])
    assert outbox.deliver_due() == 1
    (letter,) = mail.outbox
    assert letter.to == ["ada@example.org", "bob@example.org"]
    assert letter.subject == "[IntraSkill] demo, round 0: Gate of round 0 is ready for review"
    assert "+0.026 [−0.011, +0.062] over 40 pairs" in letter.body
    assert "Review: http://127.0.0.1:8000/experiments/demo/rounds/0/gate/" in letter.body


def test_a_channel_speaks_its_own_language(made: Made) -> None:
    Channel.objects.create(kind="email", target="ada@example.org", language="zh-hans")
    evaluate(made.rounds[0])
    outbox.deliver_due()
    assert "门控" in mail.outbox[0].subject


def test_without_a_mail_server_the_reason_is_kept(made: Made, settings: object) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"  # type: ignore[attr-defined]
    settings.EMAIL_HOST = ""  # type: ignore[attr-defined]
    Channel.objects.create(kind="email", target="ada@example.org")
    evaluate(made.rounds[0])
    assert outbox.deliver_due() == 0
    assert Delivery.objects.get().answer == "EMAIL_HOST is not set"


def test_a_channel_that_is_off_or_wants_no_reviews_gets_nothing(made: Made) -> None:
    Channel.objects.create(kind="email", target="a@example.org", enabled=False)
    Channel.objects.create(kind="email", target="b@example.org", with_info=False)
    evaluate(made.rounds[0])
    assert Delivery.objects.count() == 0


@pytest.mark.parametrize(
    ("now", "start", "end", "zone", "wanted"),
    [
        ("12:00", None, None, "UTC", "12:00"),
        ("12:00", (22, 0), (7, 0), "UTC", "12:00"),
        ("23:00", (22, 0), (7, 0), "UTC", "07:00 next day"),
        ("06:59", (22, 0), (7, 0), "UTC", "07:00"),
        ("07:00", (22, 0), (7, 0), "UTC", "07:00"),
        ("13:30", (12, 0), (14, 0), "UTC", "14:00"),
        ("15:00", (22, 0), (7, 0), "Asia/Shanghai", "23:00"),  # 23:00 there, until 07:00 there
        ("12:00", (9, 0), (9, 0), "UTC", "12:00"),
    ],
)
def test_quiet_hours_end_by_the_clock_of_their_zone(
    now: str, start: tuple[int, int] | None, end: tuple[int, int] | None, zone: str, wanted: str
) -> None:
    def moment(text: str) -> datetime:
        hour, minute = map(int, text[:5].split(":"))
        return datetime(2026, 3, 4 + text.endswith("next day"), hour, minute, tzinfo=UTC)

    found = earliest(
        moment(now), clock(*start) if start else None, clock(*end) if end else None, zone
    )
    assert found == moment(wanted)


def test_in_quiet_hours_messages_wait_and_leave_afterwards(made: Made) -> None:
    now = timezone.now()
    channel = Channel.objects.create(
        kind="email",
        target="ada@example.org",
        quiet_from=(now - timedelta(hours=1)).time(),
        quiet_to=(now + timedelta(hours=1)).time(),
    )
    evaluate(made.rounds[0])
    assert outbox.deliver_due() == 0
    waits = Delivery.objects.get()
    assert waits.state == "waiting"
    assert timedelta(minutes=58) < waits.next_at - now < timedelta(minutes=62)
    Channel.objects.filter(pk=channel.pk).update(quiet_from=None, quiet_to=None)
    Delivery.objects.update(next_at=now)
    assert outbox.deliver_due() == 1
    assert len(mail.outbox) == 1


def test_two_senders_send_one_message(made: Made) -> None:
    with receiver() as hook:
        webhook(hook.url)
        evaluate(made.rounds[0])
        mine = Delivery.objects.get()
        assert outbox._claim(mine)
        assert not outbox._claim(Delivery.objects.get())
        assert outbox.deliver_due() == 0
        assert hook.got == []


def test_a_message_whose_sender_died_is_unsure_and_leaves_again_only_by_hand(made: Made) -> None:
    with receiver() as hook:
        webhook(hook.url)
        evaluate(made.rounds[0])
        delivery = Delivery.objects.get()
        outbox._claim(delivery)  # and died
        long_ago = timezone.now() - timedelta(seconds=outbox.CLAIM_S + 1)
        Delivery.objects.update(claimed_at=long_ago)
        assert outbox.deliver_due() == 0
        assert Delivery.objects.get().state == "unsure"
        assert hook.got == []
        assert outbox.send_again(Delivery.objects.get())
        assert outbox.deliver_due() == 1
        assert [got.headers["webhook-id"] for got in hook.got] == [str(delivery.key)]


SENDER = """
import django, sys
django.setup()
from django.utils import timezone
from datetime import timedelta
from intraskill_web.monitoring.models import Channel, Delivery
from intraskill_web.monitoring.notify import outbox, signature
if sys.argv[1] == "make":
    from intraskill_web.experiments.models import Experiment, Round
    from intraskill_web.monitoring.models import SignalEvent
    from django.core.management import call_command
    call_command("migrate", verbosity=0)
    Channel.objects.create(kind="webhook", target=sys.argv[2], secret=signature.new_secret())
    experiment = Experiment.objects.create(name="killed")
    event = SignalEvent.objects.create(
        round=Round.objects.create(experiment=experiment, number=0), kind="stalled",
        level="open", facts={"median": 60.0},
    )
    outbox.queue_messages(event)
if sys.argv[1] == "later":
    Delivery.objects.update(claimed_at=timezone.now() - timedelta(hours=1))
print("ready", flush=True)
outbox.deliver_due()
print(",".join(Delivery.objects.values_list("state", flat=True)), flush=True)
"""


def test_a_sender_killed_in_the_middle_of_a_message_makes_no_second_one(tmp_path: Path) -> None:
    def sender(*arguments: str) -> subprocess.Popen[str]:
        env = os.environ | {
            "INTRASKILL_HOME": str(tmp_path),
            "DJANGO_SETTINGS_MODULE": "intraskill_web.settings",
        }
        env.pop("DATABASE_URL", None)
        return subprocess.Popen(
            [sys.executable, "-c", SENDER, *arguments],
            cwd=settings.BASE_DIR, env=env, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    with receiver(None, 200) as hook:
        hook.silence_s = 4.0
        first = sender("make", hook.url)
        deadline = time.monotonic() + 60
        while not hook.got and time.monotonic() < deadline:
            time.sleep(0.02)
        first.send_signal(signal.SIGKILL)
        first.communicate()
        second, _none = sender("now").communicate(timeout=60)
        assert second.split() == ["ready", "sending"]  # its claim may still be alive
        third, _none = sender("later").communicate(timeout=60)
        assert third.split() == ["ready", "unsure"]
        assert len(hook.got) == 1
