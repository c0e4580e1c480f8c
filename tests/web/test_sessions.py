"""Sessions are read with their user by a prepared query and end as Django's do."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as Older
from django.db import connection
from django.db.migrations import RunSQL
from django.test import Client
from django.utils import timezone

from intraskill_web.core.models import Session
from intraskill_web.monitoring.sessions import SessionStore

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


def test_a_session_is_its_users_from_signing_in_to_signing_out(
    viewer: User, client: Client
) -> None:
    client.get("/login/")
    client.post("/login/", {"username": viewer.username, "password": "vera-password"})
    assert [session.user for session in Session.objects.all()] == [viewer]
    assert client.get(ASKED).status_code == 200
    client.post("/logout/")
    assert not Session.objects.filter(user=viewer).exists()
    assert client.get(ASKED).status_code == 401


def test_a_session_does_not_tell_its_key(viewer_client: Client) -> None:
    session = Session.objects.get()
    assert session.session_key not in str(session)


def test_an_upgrade_signs_nobody_out(viewer_client: Client) -> None:
    now = Session.objects.get()
    Older.objects.create(
        session_key=now.session_key, session_data=now.session_data, expire_date=now.expire_date
    )
    now.delete()
    steps = import_module("intraskill_web.core.migrations.0002_session").Migration.operations
    with connection.cursor() as cursor:
        for step in steps:
            if isinstance(step, RunSQL):
                cursor.execute(step.sql)
    assert viewer_client.get(ASKED).status_code == 200
    assert not Older.objects.exists()
