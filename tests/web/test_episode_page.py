"""One episode: five kinds of ending, its siblings, its treatment and its way through the list."""

from __future__ import annotations

import pytest
from django.test import Client

from intraskill_web.episodes.detail import ending
from intraskill_web.episodes.models import Episode
from tests.web.factories import SIBLINGS, Made


@pytest.mark.parametrize(
    ("fields", "state", "words"),
    [
        ({"scored": False}, "lost", "Technical failure"),
        ({"scored": True, "success": True}, "succeeded", "Success"),
        (
            {"scored": True, "success": False, "termination": "generation_length"},
            "incomplete",
            "Truncated",
        ),
        (
            {"scored": True, "success": False, "termination": "action_limit"},
            "incomplete",
            "Turn limit",
        ),
        ({"scored": True, "success": False, "termination": "purchase"}, "failed", "Policy failure"),
    ],
)
def test_endings_are_told_apart(fields: dict[str, object], state: str, words: str) -> None:
    found = ending(Episode(**fields))
    assert (found.state, found.text) == (state, words)


def page(client: Client, episode: Episode) -> str:
    return " ".join(client.get(f"/episodes/{episode.pk}/").content.decode().split())


def test_siblings_of_the_group_stand_beside_it_retry_last(
    made: Made, viewer_client: Client
) -> None:
    retry = Episode.objects.filter(purpose="retry").order_by("pk")[0]
    group = Episode.objects.filter(experiment=made.experiment, group_index=retry.group_index)
    assert group.count() == SIBLINGS + 1
    text = page(viewer_client, group.filter(purpose="train").order_by("pk")[0])
    places = [
        text.index(f'href="/episodes/{e.pk}/"') for e in group.order_by("purpose", "sample_id")
    ]
    assert places[1:] + places[:1] == sorted(places) or places == sorted(places)
    assert f"Group {retry.group_index}" in text


def test_an_evaluation_shows_the_same_task_of_the_other_arms(
    made: Made, viewer_client: Client
) -> None:
    masked = Episode.objects.get(round=made.rounds[0], purpose="masked", task_id=4)
    bare = Episode.objects.get(round=made.rounds[0], purpose="bare", task_id=4)
    text = page(viewer_client, masked)
    assert "Same task, this round" in text
    assert f'href="/episodes/{bare.pk}/"' in text


def test_the_transcript_the_treatment_and_the_tokens(made: Made, viewer_client: Client) -> None:
    episode = Episode.objects.filter(purpose="train", skill_count__gte=2).order_by("pk")[0]
    text = page(viewer_client, episode)
    assert text.count('class="turn"') == episode.turns + 1
    assert all(f">{skill_id}</span>" in text for skill_id in episode.skill_ids)
    assert "16 of 122" in text
    assert "mean log p −0.21" in text
    assert "of the shop&lt;/b&gt;" in text


def test_the_raw_trace_is_the_json_twin(made: Made, viewer_client: Client) -> None:
    episode = Episode.objects.filter(purpose="bare").order_by("pk")[2]
    data = viewer_client.get(f"/episodes/{episode.pk}/?format=json").json()
    assert data["trace"]["episode_id"] == episode.episode_id
    assert data["reward"] == episode.reward


def test_more_than_fifty_turns_are_counted_not_cut_silently(
    made: Made, viewer_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("intraskill_web.episodes.detail.WINDOW", 2)
    text = page(viewer_client, Episode.objects.filter(purpose="bare").order_by("pk")[2])
    assert "2 turns more; the raw JSON has them" in text


def test_first_and_last_of_a_list_have_no_further_neighbour(
    made: Made, viewer_client: Client
) -> None:
    newest = Episode.objects.filter(purpose="masked").order_by("-pk")[0]
    text = page(viewer_client, newest)
    assert 'rel="prev" aria-disabled="true"' in text
    assert 'rel="next" href="' in text
