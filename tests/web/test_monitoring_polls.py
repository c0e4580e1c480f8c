"""A poll without news costs two queries, and what it compares is what the page would say."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User
from django.contrib.sessions.middleware import SessionMiddleware
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from intraskill_web.core.access import may_operate, may_see_goal
from intraskill_web.core.models import Session
from intraskill_web.experiments.models import Attempt, Stage
from intraskill_web.experiments.round_page import load_state, quick_token
from intraskill_web.monitoring.models import SignalEvent, SignalRead
from intraskill_web.monitoring.reader import ReadersMiddleware
from intraskill_web.monitoring.signals.inbox import MANY, unread_count
from tests.web.factories import Made

PATH = "/experiments/demo/rounds/1/?part=live"


def test_a_poll_without_news_asks_two_queries(made: Made, viewer_client: Client) -> None:
    tag = viewer_client.get(PATH)["ETag"]
    with CaptureQueriesContext(connection) as queries:
        answer = viewer_client.get(PATH, headers={"If-None-Match": tag})
    assert answer.status_code == 304
    assert len(queries) == 2, [q["sql"][:100] for q in queries]


@pytest.mark.parametrize("number", [0, 1])
def test_the_quick_token_is_that_of_the_whole_state(made: Made, number: int) -> None:
    assert quick_token("demo", number) == load_state("demo", number).token()


def test_whatever_changes_the_token_changes_the_quick_one(made: Made) -> None:
    def changed() -> bool:
        nonlocal last
        before, last = last, quick_token("demo", 1)
        assert last == load_state("demo", 1).token()
        return before != last

    last = quick_token("demo", 1)
    assert not changed()
    made.rounds[1].stages.get(kind="train").save()
    assert changed()
    Attempt.objects.get(pk=made.attempts[-1].pk).save()
    assert changed()
    stage = Stage.objects.get(round=made.rounds[1], kind="analyse")
    Attempt.objects.create(stage=stage, number=1)
    assert changed()
    made.experiment.save()
    assert changed()


def test_of_no_round_there_is_no_token(made: Made) -> None:
    assert quick_token("demo", 99) is None
    assert quick_token("none", 0) is None


def test_the_sessions_user_knows_what_he_may_and_what_is_unread(
    made: Made, viewer: User, operator: User, admin: User
) -> None:
    for user, wanted in ((viewer, False), (operator, True), (admin, True)):
        request = request_of(user)
        with CaptureQueriesContext(connection) as queries:
            assert request.user == user
            assert may_operate(request.user) is may_see_goal(request.user) is wanted
            assert unread_count(request.user) == 0
        assert len(queries) == 1
    event = SignalEvent.objects.create(round=made.rounds[1], kind="stalled", level="open")
    SignalEvent.objects.create(round=made.rounds[1], kind="technical", level="open")
    SignalRead.objects.create(event=event, user=viewer)
    assert [unread_count(request_of(user).user) for user in (viewer, operator)] == [1, 2]


def test_the_bell_looks_at_the_newest_signals_only(made: Made, viewer: User) -> None:
    SignalEvent.objects.bulk_create(
        SignalEvent(round=made.rounds[1], kind="stalled", subject=str(i), level="open")
        for i in range(MANY + 20)
    )
    assert unread_count(request_of(viewer).user) == MANY == unread_count(viewer)


def test_a_poll_without_news_brings_the_number_of_unread_signals(
    made: Made, viewer_client: Client
) -> None:
    answer = viewer_client.get(PATH)
    assert answer["X-Unread"] == ""
    tag = answer["ETag"]
    SignalEvent.objects.create(round=made.rounds[0], kind="stalled", level="open")
    with CaptureQueriesContext(connection) as queries:
        answer = viewer_client.get(PATH, headers={"If-None-Match": tag})
    assert (answer.status_code, answer["X-Unread"], len(queries)) == (304, "1", 2)


def test_a_page_that_does_not_poll_asks_for_the_number_alone(
    made: Made, viewer_client: Client, client: Client
) -> None:
    SignalEvent.objects.create(round=made.rounds[0], kind="stalled", level="open")
    page = viewer_client.get("/help/")
    assert "X-Unread" not in page and b'data-ask="/inbox/unread/"' in page.content
    with CaptureQueriesContext(connection) as queries:
        answer = viewer_client.get("/inbox/unread/")
    assert (answer.status_code, answer["X-Unread"], answer.content) == (204, "1", b"")
    assert len(queries) == 1, "the session with its user"
    viewer_client.logout()
    assert viewer_client.get("/inbox/unread/").status_code == 302


def test_who_may_not_log_in_has_no_session(made: Made, viewer: User) -> None:
    request = request_of(viewer)
    User.objects.update(is_active=False)
    assert not request.user.is_authenticated


def test_who_was_deleted_has_no_session(made: Made, viewer: User) -> None:
    request = request_of(viewer)
    viewer.delete()
    assert not request.user.is_authenticated
    assert not Session.objects.exists()


def test_a_session_that_does_not_say_whose_it_is_is_still_its_users(
    made: Made, operator: User
) -> None:
    request = request_of(operator)
    Session.objects.update(user=None)  # as those of an older version
    assert request.user == operator and may_operate(request.user)


def test_whose_a_session_is_is_read_from_what_was_signed(
    made: Made, viewer: User, admin: User
) -> None:
    request = request_of(viewer)
    Session.objects.update(user=admin)
    assert request.user == viewer and not may_operate(request.user)


def test_a_right_given_to_the_user_himself_counts(made: Made, viewer: User) -> None:
    right = Group.objects.get(name="operator").permissions.get(codename="operate")
    viewer.user_permissions.add(right)
    assert may_operate(request_of(viewer).user)


def request_of(user: User) -> HttpRequest:
    """A request with a session of ``user``, who is not yet asked for."""
    browser = Client()
    browser.force_login(user)
    request = RequestFactory().get(PATH)
    request.COOKIES = {name: morsel.value for name, morsel in browser.cookies.items()}
    SessionMiddleware(nothing).process_request(request)
    ReadersMiddleware(nothing).process_request(request)
    return request


def nothing(_request: HttpRequest) -> HttpResponse:
    return HttpResponse()
