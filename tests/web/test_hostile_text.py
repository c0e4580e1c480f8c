"""Model output, logs and names are hostile text: shown, never run, on every page that shows
them.
"""

from __future__ import annotations

import gzip
import json

import pytest
from django.db import connection
from django.test import Client

from intraskill_web.core.text import storable
from intraskill_web.episodes.models import Episode
from intraskill_web.experiments.models import Attempt, Stage
from intraskill_web.gates.models import Contribution
from intraskill_web.skills.models import ChunkRevision
from tests.web.factories import Made
from tests.web.html import Page
from tests.web.traces import make_trace

ATTACKS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</title></textarea></pre><svg/onload=alert(1)>",
    "{{ 7|add:7 }}{% now 'Y' %}",
    "javascript:alert(1)",
    "\u202eevil\u0000\ud7ff",
    "]]><!--<b>",
    "&lt;script&gt;",
]
EVERYTHING = " ".join(ATTACKS)


def stored() -> str:
    """Everything that a row can hold: PostgreSQL takes no NUL, SQLite does."""
    return EVERYTHING if connection.vendor == "sqlite" else storable(EVERYTHING)


def assert_inert(html: str, *, shown: bool = True) -> None:
    page = Page(html)
    assert page.policy_faults() == []
    assert not [e for e in page.elements if e[0] == "img"]
    assert not [e for e in page.elements if str(e[1].get("href", "")).startswith("javascript:")]
    assert "{{ 7|add:7 }}" in page.text or not shown


@pytest.fixture
def hostile(made: Made) -> Made:
    """Every text that a run can bring, turned into an attack."""
    text = stored()
    ChunkRevision.objects.filter(skill_id="budget").update(content=text, title=text[:200])
    Contribution.objects.filter(intervention_id="budget").update(title=text[:200])
    Episode.objects.filter(purpose="train").update(instruction=text, error=text[:300])
    Stage.objects.filter(kind="train").update(message=text[:500])
    Attempt.objects.update(error=text, host=text[:120], environment={text: text})
    return made


@pytest.mark.parametrize(
    "path",
    [
        "/experiments/demo/",
        "/experiments/demo/rounds/0/",
        "/experiments/demo/rounds/1/",
        "/experiments/demo/rounds/0/gate/",
        "/experiments/demo/rounds/0/panels/inclusion/",
        "/experiments/demo/skills/0/",
        "/experiments/demo/skills/1/",
        "/episodes/?purpose=train",
        "/jobs/",
    ],
)
def test_lists_and_pages_show_it_inert(hostile: Made, viewer_client: Client, path: str) -> None:
    html = viewer_client.get(path).content.decode()
    assert_inert(html, shown=False)
    assert "<script>alert" not in html
    assert "alert(1)" in html or path in ("/experiments/demo/rounds/0/panels/inclusion/",)


def test_a_hostile_trace_is_shown_word_by_word(made: Made, viewer_client: Client) -> None:
    episode = Episode.objects.filter(purpose="train").order_by("pk")[0]
    trace = make_trace(
        "evil", 1, 0, [("x", EVERYTHING, 0.1)], instruction=EVERYTHING, content=EVERYTHING
    )
    for step in trace["steps"]:
        step["observation"] = EVERYTHING
        step["model"]["reasoning"] = EVERYTHING
        step["model"]["tool_calls"][0]["arguments"] = {"value": EVERYTHING}
        state = step["environment"]["observation_state"]
        for product in state.get("products", []):
            product["title"] = product["brand"] = EVERYTHING
        if "product" in state:
            state["product"] = {"title": EVERYTHING, "price": EVERYTHING}
            state["available_options"] = {EVERYTHING: [EVERYTHING]}
    trace["reset"]["user_persona"] = {EVERYTHING: EVERYTHING, "items": "a key named like a method"}
    trace["final"]["goal"] = {EVERYTHING: EVERYTHING}
    trace["error"] = {
        "stage": EVERYTHING,
        "type": EVERYTHING,
        "message": EVERYTHING,
        "traceback": EVERYTHING,
    }
    episode.file.write_bytes(gzip.compress((json.dumps(trace) + "\n").encode()))
    html = viewer_client.get(f"/episodes/{episode.pk}/").content.decode()
    assert_inert(html)


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_is_typed_into_the_address_is_inert(
    made: Made, viewer_client: Client, attack: str
) -> None:
    for name in ("q", "chunk", "step", "purpose", "task"):
        answer = viewer_client.get("/episodes/", {name: attack})
        assert answer.status_code == (400 if "\x00" in attack else 200)
        assert_inert(answer.content.decode(), shown=False)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json\n",
        b"[1, 2]\n",
        b'{"steps": [{"model": "x\\ud800"}], "final": []}\n',
        b'{"steps": [[]], "conversation": {"a": 1}, "selected_skills": "abc"}\n',
        b"\x00\xff\xfe\n",
    ],
)
def test_a_broken_trace_is_never_a_500(made: Made, viewer_client: Client, body: bytes) -> None:
    episode = Episode.objects.filter(purpose="bare").order_by("pk")[0]
    episode.file.write_bytes(body)
    answer = viewer_client.get(f"/episodes/{episode.pk}/")
    assert answer.status_code == 200
    assert viewer_client.get(f"/episodes/{episode.pk}/?format=json").status_code == 200


def test_a_damaged_archive_and_a_missing_file_say_so(made: Made, viewer_client: Client) -> None:
    episode = Episode.objects.filter(purpose="train").order_by("-pk")[0]
    episode.file.write_bytes(b"\x1f\x8b\x08broken")
    assert "cannot be read" in viewer_client.get(f"/episodes/{episode.pk}/").content.decode()
    episode.file.unlink()
    assert "cannot be read" in viewer_client.get(f"/episodes/{episode.pk}/").content.decode()


def test_a_trace_outside_the_run_folder_is_not_read(made: Made, viewer_client: Client) -> None:
    episode = Episode.objects.filter(purpose="bare").order_by("pk")[1]
    Episode.objects.filter(pk=episode.pk).update(path="../../../../../../etc/passwd", line=0)
    text = viewer_client.get(f"/episodes/{episode.pk}/").content.decode()
    assert "outside the experiment" in text
    assert "root:" not in text
