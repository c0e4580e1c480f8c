"""The inbox and its channels as pages: the bell, reading, forms that refuse, test buttons."""

from __future__ import annotations

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone

from intraskill_web.core.models import AuditEvent
from intraskill_web.monitoring.models import Channel, Delivery, SignalEvent
from tests.web.factories import Made
from tests.web.html import Page
from tests.web.receiver import receiver

FORM = {
    "target": "ada@example.org", "language": "en", "with_info": "on", "quiet_from": "",
    "quiet_to": "", "time_zone": "Europe/Berlin", "enabled": "on",
}  # fmt: skip


@pytest.fixture
def event(made: Made, viewer: object) -> SignalEvent:
    """An open signal of round 1."""
    facts = {"groups": 3, "step": 14}
    return SignalEvent.objects.create(
        round=made.rounds[1], kind="technical", level="open", facts=facts
    )


def test_the_bell_counts_what_is_unread_on_every_page(
    event: SignalEvent, viewer_client: Client
) -> None:
    assert "Inbox, 1 unread" in viewer_client.get("/skills/").content.decode()
    viewer_client.post("/inbox/read/", {"id": str(event.pk)})
    page = viewer_client.get("/skills/").content.decode()
    assert "1 unread" not in page and 'aria-label="Inbox"' in page


def test_reading_is_each_readers_own(
    event: SignalEvent, viewer_client: Client, operator_client: Client
) -> None:
    SignalEvent.objects.update(opened_at=timezone.now())
    viewer_client.post("/inbox/read/", {"id": str(event.pk)})
    assert "Nothing is unread" in viewer_client.get("/inbox/").content.decode()
    assert "Technical drops" in operator_client.get("/inbox/").content.decode()


def test_the_inbox_names_the_numbers_and_leads_to_the_episodes(
    event: SignalEvent, viewer_client: Client
) -> None:
    page = Page(viewer_client.get("/inbox/").content.decode())
    assert "3 groups, the last at step 14" in " ".join(page.text.split())
    hrefs = [href for href, _label in page.links]
    assert "/experiments/demo/rounds/1/" in hrefs
    assert any("scored=no" in href for href in hrefs)
    assert page.policy_faults() == []


def test_what_is_over_leaves_the_open_ones_and_stays_among_all(
    event: SignalEvent, viewer_client: Client
) -> None:
    SignalEvent.objects.update(closed_at=timezone.now())
    assert "Technical" not in viewer_client.get("/inbox/?show=open").content.decode()
    assert "Technical" in viewer_client.get("/inbox/?show=all").content.decode()


def test_older_signals_are_a_page_further(
    event: SignalEvent, made: Made, viewer_client: Client
) -> None:
    SignalEvent.objects.bulk_create(
        SignalEvent(
            round=made.rounds[1], kind="technical", level="open", subject=str(i),
            facts={"groups": 1, "step": i},
        )
        for i in range(60)
    )  # fmt: skip
    page = Page(viewer_client.get("/inbox/").content.decode())
    older = next(href for href, label in page.links if label == "Older")
    rest = viewer_client.get(f"/inbox/{older}&format=json").json()["signals"]
    assert len(rest) == 11
    assert rest[-1]["id"] == event.pk


@pytest.mark.parametrize("nobody", ["", "999999999"])
def test_an_id_of_no_signal_marks_nothing(
    event: SignalEvent, viewer_client: Client, nobody: str
) -> None:
    assert viewer_client.post("/inbox/read/", {"id": nobody}).status_code == 302
    assert event.reads.count() == 0


@pytest.mark.parametrize("bad", ["\u00b2", "x", "1e9", "9" * 20])
def test_a_place_in_the_inbox_that_is_no_number_is_refused(
    event: SignalEvent, viewer_client: Client, bad: str
) -> None:
    answer = viewer_client.get("/inbox/", {"before": bad, "format": "json"})
    assert answer.status_code == 400
    assert answer.json()["error"] == f"before: {bad} is not a whole number"
    assert viewer_client.post("/inbox/read/", {"id": f"{event.pk},{bad}"}).status_code == 400
    assert event.reads.count() == 0


def test_one_is_sent_back_only_within_this_site(event: SignalEvent, viewer_client: Client) -> None:
    answer = viewer_client.post(
        "/inbox/read/", {"id": str(event.pk), "next": "https://elsewhere.example/"}
    )
    assert answer["Location"] == "/inbox/"


def test_a_viewer_sees_the_channels_and_changes_none(made: Made, viewer_client: Client) -> None:
    channel = Channel.objects.create(kind="webhook", target="http://a.example/", secret="whsec_x")
    page = viewer_client.get("/inbox/channels/").content.decode()
    assert "http://a.example/" in page and "whsec_x" not in page
    for path in ("new/email/", f"{channel.pk}/", f"{channel.pk}/test/", f"{channel.pk}/remove/"):
        answer = viewer_client.post(f"/inbox/channels/{path}", FORM)
        assert answer.status_code == 403
    assert viewer_client.get(f"/inbox/channels/{channel.pk}/").status_code == 403


def test_an_operator_adds_a_channel_and_the_trail_says_so(
    made: Made, operator_client: Client
) -> None:
    hours = {"quiet_from": "22:00", "quiet_to": "07:00"}
    answer = operator_client.post("/inbox/channels/new/email/", FORM | hours)
    channel = Channel.objects.get()
    assert answer["Location"] == f"/inbox/channels/{channel.pk}/"
    assert f"{channel.quiet_from}–{channel.quiet_to}" == "22:00:00–07:00:00"
    assert AuditEvent.objects.filter(action="channel.save").count() == 1


@pytest.mark.parametrize(
    ("kind", "given", "word"),
    [
        ("email", {"target": "ada@"}, "is no e-mail address"),
        ("email", {"target": "a@example.org, ,b"}, "“b” is no e-mail address"),
        ("email", {"target": ""}, "required"),
        ("webhook", {"target": "ftp://x.example/"}, "is no address of a webhook"),
        ("webhook", {"target": "https://"}, "is no address of a webhook"),
        ("webhook", {"target": "http://x.example:0/"}, "is no address of a webhook"),
        ("webhook", {"target": "https://me:pw@x.example/"}, "holds a password"),
        ("email", {"time_zone": "Mars/Olympus"}, "is no time zone"),
        ("email", {"quiet_from": "22:00"}, "need both times"),
        ("email", {"quiet_to": "25:00"}, "valid time"),
        ("email", {"language": "tlh"}, "not one of the available choices"),
    ],
)
def test_a_wrong_value_is_refused_beside_its_field(
    made: Made, operator_client: Client, kind: str, given: dict[str, str], word: str
) -> None:
    answer = operator_client.post(f"/inbox/channels/new/{kind}/", FORM | given)
    assert answer.status_code == 422
    page = Page(answer.content.decode())
    assert word in page.text
    assert any(a.get("aria-invalid") == "true" for _tag, a in page.elements)
    assert Channel.objects.count() == 0


def test_a_second_channel_to_one_address_is_refused(made: Made, operator_client: Client) -> None:
    assert operator_client.post("/inbox/channels/new/email/", FORM).status_code == 302
    assert operator_client.post("/inbox/channels/new/email/", FORM).status_code == 422


def test_a_webhook_gets_a_secret_that_can_be_made_anew(made: Made, operator_client: Client) -> None:
    form = FORM | {"target": "https://x.example/hook"}
    operator_client.post("/inbox/channels/new/webhook/", form)
    channel = Channel.objects.get()
    old = channel.secret
    assert old in operator_client.get(f"/inbox/channels/{channel.pk}/").content.decode()
    operator_client.post(f"/inbox/channels/{channel.pk}/", form)
    channel.refresh_from_db()
    assert channel.secret == old
    operator_client.post(f"/inbox/channels/{channel.pk}/", form | {"new_secret": "on"})
    channel.refresh_from_db()
    assert channel.secret != old and channel.secret.startswith("whsec_")


def test_the_test_button_sends_at_once_also_in_quiet_hours(
    made: Made, operator_client: Client
) -> None:
    with receiver(200, 404) as hook:
        form = FORM | {"target": hook.url, "quiet_from": "00:00", "quiet_to": "23:59"}
        operator_client.post("/inbox/channels/new/webhook/", form)
        path = f"/inbox/channels/{Channel.objects.get().pk}/test/"
        good = operator_client.post(path, follow=True).content.decode()
        assert "Test sent: HTTP 200" in good
        assert hook.got[0].data["type"] == "test"
        bad = operator_client.post(path, follow=True).content.decode()
        assert "Test not sent: HTTP 404" in bad


def test_the_test_button_of_an_e_mail_channel(made: Made, operator_client: Client) -> None:
    operator_client.post("/inbox/channels/new/email/", FORM)
    operator_client.post(f"/inbox/channels/{Channel.objects.get().pk}/test/")
    assert [letter.subject for letter in mail.outbox] == ["[IntraSkill] Test message"]


def test_a_failed_message_can_be_sent_again_and_a_sent_one_not(
    event: SignalEvent, operator_client: Client
) -> None:
    channel = Channel.objects.create(kind="email", target="ada@example.org")
    delivery = Delivery.objects.create(
        channel=channel, event=event, state="failed", next_at=timezone.now(), tries=6
    )
    operator_client.post(f"/inbox/deliveries/{delivery.pk}/again/")
    delivery.refresh_from_db()
    assert (delivery.state, delivery.tries) == ("waiting", 0)
    Delivery.objects.update(state="sent")
    answer = operator_client.post(f"/inbox/deliveries/{delivery.pk}/again/", follow=True)
    assert "on its way already" in answer.content.decode()


def test_removing_a_channel_removes_its_messages(made: Made, operator_client: Client) -> None:
    operator_client.post("/inbox/channels/new/email/", FORM)
    pk = Channel.objects.get().pk
    operator_client.post(f"/inbox/channels/{pk}/test/")
    operator_client.post(f"/inbox/channels/{pk}/remove/")
    assert (Channel.objects.count(), Delivery.objects.count()) == (0, 0)


def test_an_unknown_kind_of_channel_does_not_exist(made: Made, operator_client: Client) -> None:
    assert operator_client.get("/inbox/channels/new/pigeon/").status_code == 404
