"""Configurations in the admin: revisions that never change, made by form or YAML, locked by use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db.models import ProtectedError
from django.test import Client

from intraskill_web.configs.forms import SchemaForm
from intraskill_web.configs.kinds import check, groups_of, read_text, write_text
from intraskill_web.configs.models import ConfigRevision
from intraskill_web.configs.schema import fill
from intraskill_web.configs.services import add_revision
from intraskill_web.core.models import AuditEvent
from intraskill_web.experiments.models import Experiment
from trainer.errors import InputError

pytestmark = pytest.mark.django_db
ADD = "/admin/configs/configrevision/add/"
CHECK = "/admin/configs/configrevision/check/"
MINI = "configs/mini"


def make(kind: str, document: dict[str, Any] | None = None, **more: Any) -> ConfigRevision:
    document = document or {}
    return add_revision(
        kind, document, write_text(document) if document else "", reason="a start", **more
    )


def fields(kind: str, document: dict[str, Any] | None = None, **changed: Any) -> dict[str, Any]:
    """What a browser sends: boxes that are not ticked are left out."""
    texts = fill(groups_of(kind), document or check(kind, {})[0]) | changed
    return {k: "on" if v is True else v for k, v in texts.items() if v is not False}


def launch_document() -> dict[str, Any]:
    for kind in ("gate", "analyst", "curriculum"):
        make(kind)
    return {
        "gate": 1,
        "analyst": 1,
        "curriculum": 1,
        "start": {"skillbank": f"{MINI}/skillbank.json", "checkpoint": f"{MINI}/checkpoint"},
    }


def page_of(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()


def test_a_form_makes_the_next_revision_with_its_reason(admin_client: Client, admin: Any) -> None:
    first = make("gate")
    data = fields("gate", active_skill_budget="8") | {"reason": "Fewer slots, more power"}
    response = admin_client.post(f"{ADD}?kind=gate&from={first.pk}", data)
    assert response.status_code == 302
    second = ConfigRevision.objects.get(kind="gate", number=2)
    assert (second.document["active_skill_budget"], second.author) == (8, admin)
    assert (second.reason, second.based_on) == ("Fewer slots, more power", first)
    text = page_of(admin_client, response["Location"])
    assert "active_skill_budget" in text and "<del>10</del>" in text and "<ins>8</ins>" in text
    event = AuditEvent.objects.get(action="config.revise", actor=admin)
    assert event.subject == "gate r2"


def test_a_form_without_a_reason_saves_nothing_and_hides_no_other_mistake(
    admin_client: Client,
) -> None:
    data = fields("gate", active_skill_budget="0") | {"reason": " "}
    text = admin_client.post(f"{ADD}?kind=gate", data).content.decode()
    assert "This field is required" in text and "must be ≥ 1" in text
    assert not ConfigRevision.objects.exists()


def test_the_check_says_what_saving_would_say(admin_client: Client) -> None:
    first = make("gate")
    said = admin_client.post(
        f"{CHECK}?kind=gate&from={first.pk}", fields("gate", **{"standard.adopt_alpha": "0.4"})
    ).json()
    assert [p["path"] for p in said["problems"]] == ["standard"]
    said = admin_client.post(
        f"{CHECK}?kind=gate&from={first.pk}", fields("gate", active_skill_budget="20")
    ).json()
    assert said["problems"] == []
    assert said["changes"] == [["active_skill_budget", "10", "20"]]
    assert "26 slots and 400 tasks" in said["note"] and "goes from" in said["note"]


def test_yaml_comes_out_byte_by_byte_as_it_went_in(admin_client: Client) -> None:
    text = "# why: 中文\nprofile: published   # as of the paper\nactive_skill_budget: 9\n"
    data = {"yaml": text.replace("\n", "\r\n"), "reason": "From a file"}
    response = admin_client.post(f"{ADD}?kind=gate&as=yaml", data)
    assert response.status_code == 302
    made = ConfigRevision.objects.get()
    assert made.document["profile"] == "published"
    out = admin_client.get(f"/admin/configs/configrevision/{made.pk}/yaml/")
    assert out.content.decode() == text
    assert "gate-r1.yaml" in out["Content-Disposition"]


def test_an_error_in_yaml_names_its_line(admin_client: Client) -> None:
    data = {"yaml": "profile: standard\nactive_skill_budget: 0\n", "reason": "x"}
    text = admin_client.post(f"{ADD}?kind=gate&as=yaml", data).content.decode()
    assert "line 2: active_skill_budget must be ≥ 1" in text
    assert not ConfigRevision.objects.exists()


def test_a_revision_without_a_change_is_refused(admin_client: Client) -> None:
    first = make("curriculum")
    data = fields("curriculum") | {"reason": "Nothing"}
    text = admin_client.post(f"{ADD}?kind=curriculum&from={first.pk}", data).content.decode()
    assert "nothing differs from" in text
    assert ConfigRevision.objects.count() == 1


def test_a_revision_never_changes(admin_client: Client) -> None:
    made = make("gate")
    made.reason = "Another"
    with pytest.raises(TypeError):
        made.save()
    address = f"/admin/configs/configrevision/{made.pk}/change/"
    admin_client.post(address, {"reason": "Another"})
    made.refresh_from_db()
    assert made.reason == "a start"


def test_a_launch_makes_an_experiment_and_locks_all_it_was_made_from(
    admin_client: Client, home: Path
) -> None:
    revision = make("launch", launch_document())
    address = f"/admin/configs/configrevision/{revision.pk}/"
    response = admin_client.post(f"{address}launch/", {"name": "fresh"})
    assert response["Location"] == "/experiments/fresh/"
    experiment = Experiment.objects.get(name="fresh")
    used = {use.revision.kind for use in experiment.config_uses.all()}
    assert used == {"launch", "gate", "analyst", "curriculum"}
    assert "Locked" in page_of(admin_client, f"{address}change/")
    assert admin_client.post(f"{address}delete/", {"post": "yes"}).status_code == 403
    with pytest.raises(ProtectedError):
        revision.delete()
    response = admin_client.post(f"{address}launch/", {"name": "fresh"}, follow=True)
    assert "an experiment of this name exists" in response.content.decode()


def test_a_launch_names_a_missing_revision_and_a_missing_file(admin_client: Client) -> None:
    document = launch_document()
    for changed, said in (
        ({"gate": 7}, "there is no revision 7"),
        ({"start": {"skillbank": "nowhere.json", "checkpoint": "x"}}, "there is no file"),
    ):
        data = {"yaml": write_text(document | changed), "reason": "x"}
        text = admin_client.post(f"{ADD}?kind=launch&as=yaml", data).content.decode()
        assert said in text
    assert not ConfigRevision.objects.filter(kind="launch").exists()


def test_an_experiment_started_by_a_command_is_recorded_too(home: Path) -> None:
    from intraskill_web.experiments.making import create_experiment
    from jobs.demo import configuration

    experiment = create_experiment(configuration(quick=True))
    uses = {use.revision.kind: use.revision for use in experiment.config_uses.all()}
    assert set(uses) == {"gate", "analyst", "curriculum"}
    assert uses["gate"].document == experiment.config["gate"]
    other = create_experiment(configuration(quick=True, seed=5))
    assert {use.revision for use in other.config_uses.all()} == set(uses.values())


def test_an_unused_revision_can_be_deleted(admin_client: Client) -> None:
    made = make("gate")
    address = f"/admin/configs/configrevision/{made.pk}/delete/"
    assert admin_client.post(address, {"post": "yes"}).status_code == 302
    assert not ConfigRevision.objects.exists()


def test_only_admins_come_near(viewer_client: Client, operator_client: Client) -> None:
    made = make("gate")
    for client in (viewer_client, operator_client):
        for path in (ADD, CHECK, f"/admin/configs/configrevision/{made.pk}/yaml/"):
            assert client.get(path).status_code == 302
            assert client.post(path, {}).status_code == 302
    assert ConfigRevision.objects.count() == 1


def test_hostile_text_stays_text(admin_client: Client) -> None:
    hostile = "</pre><script>alert(1)</script>"
    text = f"# {hostile}\nprofile: published\n"
    admin_client.post(f"{ADD}?kind=gate&as=yaml", {"yaml": text, "reason": hostile})
    made = ConfigRevision.objects.get()
    for path in ("", f"{made.pk}/change/"):
        page = page_of(admin_client, f"/admin/configs/configrevision/{path}")
        assert "<script>alert(1)" not in page
        assert "&lt;script&gt;alert(1)" in page


@pytest.mark.parametrize("kind", ["gate", "analyst", "curriculum", "launch"])
def test_the_form_of_every_kind_opens(kind: str, admin_client: Client) -> None:
    text = page_of(admin_client, f"{ADD}?kind={kind}")
    for group in groups_of(kind):
        for leaf in group.leaves:
            assert f'name="{leaf.path}"' in text
    assert SchemaForm(groups_of(kind), {}).fields["reason"].required
    assert page_of(admin_client, f"{ADD}?kind={kind}&as=yaml")


def test_a_revision_that_is_not_there_is_neither_shown_nor_begun_from(admin_client: Client) -> None:
    made = make("gate")
    shown = f"/admin/configs/configrevision/{made.pk}/change/"
    for address in (f"{ADD}?kind=gat", f"{ADD}?from=99", f"{ADD}?from=x", f"{shown}?against=x"):
        assert admin_client.get(address).status_code == 400
    for unknown in ("99", "x", "9" * 30):
        assert admin_client.get(shown.replace(str(made.pk), unknown, 1)).status_code == 404


@pytest.mark.parametrize("text", ["a: 2026-13-99", "a: " + "[" * 5000, "a: 0b_", "a: ["])
def test_a_text_that_no_yaml_reader_takes_is_a_mistake_and_no_fault(text: str) -> None:
    with pytest.raises(InputError):
        read_text(text)
