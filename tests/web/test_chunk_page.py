"""The life of a chunk over rounds and texts, and downloads of a version."""

from __future__ import annotations

from django.test import Client

from intraskill_web.gates.models import Contribution
from intraskill_web.skills.diff import Text, compare
from intraskill_web.skills.models import ChunkRevision, SkillVersionChunk
from tests.web.factories import Made, rho
from tests.web.test_hostile_text import assert_inert, stored
from trainer.files import write_text

PATH = "/experiments/demo/chunks/brand-first/"


def test_each_round_has_target_observation_and_contribution(
    made: Made, viewer_client: Client
) -> None:
    data = viewer_client.get(f"{PATH}?format=json").json()
    row = Contribution.objects.get(gate__round=made.rounds[0], intervention_id="brand-first")
    first = data["rounds"][0]
    assert (first["round"], first["coefficient"]) == (0, row.coefficient)
    assert first["rho"] == rho(0.062)
    page = viewer_client.get("/experiments/demo/rounds/0/panels/inclusion/?format=json").json()
    (line,) = [row for row in page["rows"] if row["skill_id"] == "brand-first"]
    assert line["n"] > 0
    assert [first[k] for k in ("observed", "shown", "groups")] == [
        line[k] for k in ("observed", "shown", "n")
    ]


def test_a_rewrite_is_shown_as_the_change_of_its_text(made: Made, viewer_client: Client) -> None:
    last = (
        SkillVersionChunk.objects.filter(
            version__experiment=made.experiment, revision__skill_id="brand-first"
        )
        .order_by("version__number")
        .last()
    )
    assert last is not None
    before = last.revision
    last.revision = ChunkRevision.objects.create(
        experiment=made.experiment, skill_id="brand-first", content_sha256="f" * 64,
        content=before.content + " Always.", version="2", title="Brand, always",
    )  # fmt: skip
    last.save()
    data = viewer_client.get(f"{PATH}?format=json").json()
    assert [t["content"] for t in data["texts"]] == [before.content, before.content + " Always."]
    html = viewer_client.get(PATH).content.decode()
    assert "<ins>" in html
    assert "Always" in html


def test_a_text_that_is_not_here_is_said_and_not_compared() -> None:
    old = [Text("a", "old", "1" * 64)]
    change = compare(old, [Text("a", "", "")])[0]
    assert (change.change, change.unknown) == ("rewritten", True)
    assert compare(old, [Text("a", "new", "2" * 64)])[0].unknown is False


def test_an_unknown_chunk_is_no_page(made: Made, viewer_client: Client) -> None:
    assert viewer_client.get("/experiments/demo/chunks/nothing/").status_code == 404


def test_a_version_can_be_taken_home(made: Made, viewer_client: Client) -> None:
    answer = viewer_client.get("/experiments/demo/skills/0/skill.md")
    assert answer["Content-Disposition"] == 'attachment; filename="demo-S0-skill.md"'
    text = answer.content.decode()
    entries = SkillVersionChunk.objects.filter(
        version__experiment=made.experiment, version__number=0
    ).order_by("order")
    places = [text.index(e.revision.content) for e in entries]
    assert places == sorted(places)
    assert viewer_client.get("/experiments/demo/skills/0/bank.json").status_code == 404
    file = made.experiment.folder / "skillbank.json"
    write_text(file, '{"skills": []}')
    assert viewer_client.get("/experiments/demo/skills/0/bank.json").content == file.read_bytes()
    file.unlink()


def test_hostile_texts_are_inert(made: Made, viewer_client: Client) -> None:
    ChunkRevision.objects.filter(skill_id="brand-first").update(
        content=stored(), title=stored()[:200]
    )
    assert_inert(viewer_client.get(PATH).content.decode())
