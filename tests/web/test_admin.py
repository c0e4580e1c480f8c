"""Admin pages show every table and change none of ours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.apps import apps
from django.contrib import admin
from django.test import Client
from django.utils import translation

from intraskill_web.core import audit
from intraskill_web.experiments.flow import new_round
from intraskill_web.experiments.models import Experiment

MODELS = [
    f"{model._meta.app_label}/{model._meta.model_name}"
    for model in admin.site._registry
    if model.__module__.startswith("intraskill_web")
]
CJK = re.compile("[\u4e00-\u9fff]")
ADDED_BY_PEOPLE = {"configs/configrevision"}


@pytest.mark.django_db
@pytest.mark.parametrize("model", MODELS)
def test_every_list_opens_and_offers_nothing_to_add(
    model: str, admin_client: Client, home: Path
) -> None:
    new_round(Experiment.objects.create(name="one"), 0)
    audit.record("round.start", experiment="one")
    assert admin_client.get(f"/admin/{model}/").status_code == 200
    refused = model not in ADDED_BY_PEOPLE
    assert admin_client.get(f"/admin/{model}/add/").status_code == (403 if refused else 200)


@pytest.mark.django_db
@pytest.mark.parametrize("model", MODELS)
def test_every_list_can_be_searched_and_filtered(
    model: str, admin_client: Client, home: Path
) -> None:
    new_round(Experiment.objects.create(name="one"), 0)
    audit.record("round.start", experiment="one")
    found = next(
        item
        for item in admin.site._registry.values()
        if f"{item.model._meta.app_label}/{item.model._meta.model_name}" == model
    )
    assert found.search_fields
    assert admin_client.get(f"/admin/{model}/?q=one").status_code == 200


@pytest.mark.django_db
def test_rows_can_be_looked_at_and_not_saved(admin_client: Client) -> None:
    experiment = Experiment.objects.create(name="one")
    address = f"/admin/experiments/experiment/{experiment.pk}/change/"
    assert admin_client.get(address).status_code == 200
    assert admin_client.post(address, {"name": "two"}).status_code == 403
    experiment.refresh_from_db()
    assert experiment.name == "one"


@pytest.mark.django_db
def test_viewers_and_operators_have_no_business_there(
    viewer_client: Client, operator_client: Client
) -> None:
    for client in (viewer_client, operator_client):
        assert client.get("/admin/").status_code == 302
        assert client.get("/queue/").status_code == 302


def test_every_app_of_ours_has_a_name_in_chinese(admin_client: Client, home: Path) -> None:
    page = admin_client.get("/admin/", headers={"Accept-Language": "zh-hans"}).content.decode()
    for app in apps.get_app_configs():
        if app.name.startswith(("intraskill_web.", "jobs")) and list(app.get_models()):
            with translation.override("zh-hans"):
                name = str(app.verbose_name)
            assert CJK.search(name), app.name
            if f"/admin/{app.label}/" in page:
                assert name in page
