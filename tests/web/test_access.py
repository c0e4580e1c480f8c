"""Roles: who may operate, asked once and answered as Django would."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AnonymousUser, Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from intraskill_web.core.access import may_operate, role
from intraskill_web.core.roles import OPERATE


def fresh(user: Any) -> User:
    return User.objects.get(pk=user.pk)


def test_the_answer_is_that_of_django(viewer: Any, operator: Any, admin: Any) -> None:
    for user in (viewer, operator, admin):
        assert may_operate(fresh(user)) == fresh(user).has_perm(OPERATE)
    assert [role(fresh(u)) for u in (viewer, operator, admin)] == ["viewer", "operator", "admin"]


def test_a_permission_of_ones_own_counts(viewer: Any) -> None:
    viewer.user_permissions.add(Permission.objects.get(codename="operate"))
    assert may_operate(fresh(viewer))


def test_nobody_and_the_inactive_may_not(operator: Any) -> None:
    assert not may_operate(AnonymousUser())
    operator.is_active = False
    assert not may_operate(operator)


def test_it_is_asked_once(operator: Any) -> None:
    user = fresh(operator)
    with CaptureQueriesContext(connection) as queries:
        assert may_operate(user)
        assert may_operate(user)
    assert len(queries) == 1


def test_the_account_menu_names_the_role(operator_client: Client) -> None:
    text = operator_client.get("/").content.decode()
    assert "operator" in text
    assert "Administration" not in text


def test_signing_out_needs_a_post(operator_client: Client) -> None:
    assert operator_client.get("/logout/").status_code == 405
    assert operator_client.post("/logout/").status_code == 302
    assert operator_client.get("/").status_code == 302
