"""Sessions are read by a prepared query and end as Django's do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from intraskill_web.core.sessions import SessionStore

ASKED = "/episodes/?format=json"


def test_a_session_lets_its_user_in_until_it_expires(viewer_client: Client) -> None:
    assert viewer_client.get(ASKED).status_code == 200
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
    assert viewer_client.get(ASKED).status_code == 401


def test_a_session_that_was_deleted_lets_nobody_in(viewer_client: Client) -> None:
    Session.objects.all().delete()
    assert viewer_client.get(ASKED).status_code == 401


def test_a_session_whose_data_was_tampered_with_lets_nobody_in(viewer_client: Client) -> None:
    session = Session.objects.get()
    session.session_data = session.session_data[:-1] + "!"
    session.save()
    assert viewer_client.get(ASKED).status_code == 401


@pytest.mark.parametrize("key", ["", "short", "x" * 32, "'; --" * 8, "\0abcdefghij"])
def test_a_key_that_no_session_has_lets_nobody_in(db: None, key: str) -> None:
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = key
    assert client.get(ASKED).status_code == 401


def test_what_a_request_does_to_its_session_is_not_what_the_next_one_finds(db: None) -> None:
    made = SessionStore()
    made["kept"] = {"list": [1]}
    made.save()
    SessionStore(made.session_key)["kept"]["list"].append(2)
    assert SessionStore(made.session_key)["kept"] == {"list": [1]}


def test_a_session_does_not_outlive_the_key_that_signed_it(
    viewer_client: Client, settings: Any
) -> None:
    assert viewer_client.get(ASKED).status_code == 200
    settings.SECRET_KEY = "another"
    assert viewer_client.get(ASKED).status_code == 401
