"""A skill version's page: which of a chunk's figures is which."""

from __future__ import annotations

from django.test import Client

from intraskill_web.gates.models import Contribution
from intraskill_web.skills.models import SkillVersionChunk
from tests.web.factories import Made
from tests.web.html import Page

PATH = "/experiments/demo/skills/1/"


def text_of(client: Client, path: str) -> str:
    return " ".join(Page(client.get(path).content.decode()).text.split())


def test_beta_is_that_of_the_gate_page_and_stands_beside_what_rho_follows(
    made: Made, viewer_client: Client
) -> None:
    entry = SkillVersionChunk.objects.filter(version__number=1).order_by("order")[0]
    skill_id = entry.revision.skill_id
    Contribution.objects.filter(
        gate__round=made.rounds[0], logical_chunk_id=skill_id, status="selected"
    ).update(coefficient=0.057)
    SkillVersionChunk.objects.filter(pk=entry.pk).update(effect=0.049)
    assert "β +0.057 · shrunk +0.049" in text_of(viewer_client, PATH)
    gate = viewer_client.get("/experiments/demo/rounds/0/gate/?format=json").json()
    betas = {
        row["logical_chunk_id"]: row["coefficient"]
        for row in gate["contributions"]
        if row["status"] == "selected"
    }
    shown = viewer_client.get(f"{PATH}?format=json").json()["chunks"]
    assert {row["skill_id"]: row["beta"] for row in shown} == {
        row["skill_id"]: betas[row["skill_id"]] for row in shown
    }
    assert shown[0]["effect"] == 0.049


def test_one_figure_is_shown_where_both_are_the_same(made: Made, viewer_client: Client) -> None:
    for entry in SkillVersionChunk.objects.filter(version__number=1).select_related("revision"):
        Contribution.objects.filter(
            gate__round=made.rounds[0], logical_chunk_id=entry.revision.skill_id, status="selected"
        ).update(coefficient=entry.effect)
    text = text_of(viewer_client, PATH)
    assert "β +0." in text and "shrunk +" not in text


def test_the_first_version_has_no_gate_and_says_whose_effect_it_shows(
    made: Made, viewer_client: Client
) -> None:
    text = text_of(viewer_client, "/experiments/demo/skills/0/")
    assert "effect as the first bank states it" in text and "effect +0." in text
    assert "β" not in text
