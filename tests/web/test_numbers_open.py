"""A number that counts episodes opens exactly these: the link's list is as long as the page
says.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from intraskill_web.episodes.models import Episode
from intraskill_web.experiments.round_page import load_data, load_gates, load_state
from intraskill_web.experiments.round_view import round_panel
from intraskill_web.monitoring.panels.outcome import OutcomeRow
from intraskill_web.skills.internalisation import build
from tests.web.factories import GROUPS, SIBLINGS, STEPS, Made
from tests.web.html import Page


def total(client: Client, href: str) -> int:
    answer = client.get(f"{href}&facets=1&format=json")
    assert answer.status_code == 200, answer.content
    return int(answer.json()["total"])


def panel(key: str, number: int = 0):  # type: ignore[no-untyped-def]
    state = load_state("demo", number)
    found = round_panel(load_data(state.round), key, load_gates(state.round))
    assert found is not None
    return found


def test_the_episodes_of_each_population_of_the_last_step(
    made: Made, viewer_client: Client
) -> None:
    rows: list[OutcomeRow] = panel("outcome").facts["rows"]
    assert rows[0].n == GROUPS * SIBLINGS
    for row in rows:
        if row.href:
            assert total(viewer_client, row.href) == row.n, row.label


def test_the_rows_of_the_outcome_table(made: Made, viewer_client: Client) -> None:
    for row in panel("outcome").table.rows:
        assert total(viewer_client, row["_href"]) == row["episodes"]


def test_every_row_of_the_inclusion_panel(made: Made, viewer_client: Client) -> None:
    for line in panel("inclusion").facts["rows"]:
        assert total(viewer_client, line.href) == line.row.shown * SIBLINGS, line.title


def test_the_failure_frontier(made: Made, viewer_client: Client) -> None:
    facts = panel("frontier").facts
    assert facts["groups"] == GROUPS * STEPS
    assert total(viewer_client, facts["href_failed"]) == facts["retry_failed"] * SIBLINGS
    assert total(viewer_client, facts["href_helped"]) == facts["retry_succeeded"] * SIBLINGS
    retries = facts["retry_failed"] + facts["retry_succeeded"]
    assert total(viewer_client, facts["href_retries"]) == retries == facts["all_wrong"]


def test_the_scores_of_the_checkpoints(made: Made, viewer_client: Client) -> None:
    page = Page(viewer_client.get("/experiments/demo/").content.decode())
    links = [href for href, text in page.links if "purpose=bare" in href and text]
    assert links
    for href in links:
        assert total(viewer_client, href) == 40


@pytest.mark.parametrize(
    "path",
    ["/", "/experiments/demo/", "/experiments/demo/rounds/0/", "/experiments/demo/rounds/0/gate/"],
)
def test_every_link_of_a_page_leads_somewhere(made: Made, viewer_client: Client, path: str) -> None:
    for href in own_links(viewer_client.get(path).content.decode()):
        assert viewer_client.get(href).status_code == 200, href


def own_links(html: str) -> Iterator[str]:
    """One link of each kind: same page and same parameters are one kind."""
    seen = set()
    for href, _text in Page(html).links:
        address = urlsplit(unescape(href))
        kind = (address.path, tuple(sorted(parse_qs(address.query))))
        if href.startswith("/") and kind not in seen and not href.endswith((".txt", "/admin/")):
            seen.add(kind)
            yield unescape(href)


def test_the_rows_of_internalisation_in_training(made: Made, viewer_client: Client) -> None:
    Episode.objects.filter(purpose="train", group_index=0).update(
        treatment_mode="assisted_empty", skill_ids=[]
    )
    rows = build(made.experiment).training
    assert rows[0].empty_groups == 1
    for row in rows:
        assert total(viewer_client, row.free_href) == row.free_groups * SIBLINGS
        empty = total(viewer_client, row.empty_href)
        assert empty == row.empty_groups * SIBLINGS
        assert total(viewer_client, row.assisted_href) == row.assisted_groups * SIBLINGS - empty


def test_every_row_of_the_masks_page(made: Made, viewer_client: Client) -> None:
    path = "/experiments/demo/rounds/0/masks/"
    twin = viewer_client.get(f"{path}?format=json").json()["windows"]
    whole = {w["skill_id"]: w["shown"] for w in reversed(twin)}  # the whole round stands first
    page = Page(viewer_client.get(path).content.decode())
    opened = 0
    for href, _text in page.links:
        query = parse_qs(urlsplit(href).query)
        if "purpose" in query:
            key = query.get("chunk", ["skill-free"])[0]
            assert total(viewer_client, href) == whole[key] * SIBLINGS, key
            opened += 1
    assert opened == len(whole)
