"""One episode: five kinds of ending, its siblings, its treatment and its way through the list."""

from __future__ import annotations

import json
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from intraskill_web.episodes.endings import ending
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.tokens import token_view
from intraskill_web.episodes.transcript import transcript
from intraskill_web.experiments.models import Experiment
from tests.web.factories import CHUNKS, SIBLINGS, Made
from tests.web.queries import questions
from tests.web.traces import make_trace


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
    assert all(f'class="id">{skill_id}' in text for skill_id in episode.skill_ids)
    assert "16 of 122" in text
    assert "mean log p −0.21" in text
    assert "of the shop&lt;/b&gt;" in text


def test_the_raw_trace_is_the_json_twin(made: Made, viewer_client: Client) -> None:
    episode = Episode.objects.filter(purpose="bare").order_by("pk")[2]
    data = viewer_client.get(f"/episodes/{episode.pk}/?format=json").json()
    assert data["trace"]["episode_id"] == episode.episode_id
    assert data["reward"] == episode.reward


def test_a_long_episode_is_shown_in_windows_and_a_turn_opens_its_own(
    made: Made, viewer_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("intraskill_web.episodes.reading.WINDOW", 2)
    episode = Episode.objects.filter(purpose="bare").order_by("pk")[2]
    text = page(viewer_client, episode)
    assert 'id="t2"' in text and 'id="t3"' not in text
    assert "turns 1 to 2 of 4" in text and "turn=3#t3" in text
    later = viewer_client.get(f"/episodes/{episode.pk}/?turn=4").content.decode()
    assert 'id="t4"' in later and 'id="t2"' not in later
    beyond = viewer_client.get(f"/episodes/{episode.pk}/?turn=999").content.decode()
    assert 'id="t4"' in beyond


def test_the_private_goal_is_for_those_who_may_see_it(
    made: Made, viewer_client: Client, operator_client: Client
) -> None:
    episode = Episode.objects.filter(purpose="bare", success=False).order_by("pk")[0]
    assert "Bought and wanted" not in page(viewer_client, episode)
    data = viewer_client.get(f"/episodes/{episode.pk}/?format=json").json()
    assert "goal" not in data["trace"]["final"] and "purchase" in data["trace"]["final"]
    detail = data["trace"]["final"]["reward_detail"]
    assert detail["r_att"] == 1.0 and not {"price_upper", "target_asin_match"} & detail.keys()
    text = page(operator_client, episode)
    assert "Bought and wanted" in text and "≤ 27" in text
    seen = operator_client.get(f"/episodes/{episode.pk}/?format=json").json()
    assert seen["trace"]["final"]["goal"]["price_upper"] == 27
    assert seen["trace"]["final"]["reward_detail"]["price_upper"] == 27


def test_tokens_show_the_loss_mask(made: Made, viewer_client: Client) -> None:
    episode = Episode.objects.filter(purpose="train").order_by("pk")[0]
    text = viewer_client.get(f"/episodes/{episode.pk}/tokens/").content.decode()
    assert text.count('class="tk p1" title="-0.2100"') == 16
    assert "16 of 122 tokens" in text
    assert "tokens are numbers" in text


@pytest.mark.parametrize(
    "tokens",
    [None, {"total": 3}, {"token_ids": [1, 2], "sampled_spans": [[0, 9]], "log_probs": []}],
)
def test_tokens_that_are_missing_or_damaged_are_said_to_be(tokens: object) -> None:
    assert token_view({"tokens": tokens}) is None


def test_a_text_beyond_the_limit_is_cut_and_whole_elsewhere(
    made: Made, viewer_client: Client
) -> None:
    episode = Episode.objects.filter(purpose="baseline").order_by("pk")[3]
    long = "<b>" + "长" * 30_000 + "end"
    episode.file.write_text(
        "\n" * 3 + json.dumps(make_trace("long", 3, 0, [], content=long)) + "\n"
    )
    html = viewer_client.get(f"/episodes/{episode.pk}/").content.decode()
    assert "10,006 more characters: the whole text" in html
    whole = viewer_client.get(f"/episodes/{episode.pk}/turns/2.txt")
    assert whole["Content-Type"].startswith("text/plain") and long in whole.content.decode()
    assert viewer_client.get(f"/episodes/{episode.pk}/turns/99.txt").status_code == 404


def test_control_characters_become_their_signs() -> None:
    trace = make_trace("e", 1, 0, [], content="a\x1b[31mred\x00\x7f\n")
    assert transcript(trace).turns[1].content == "a␛[31mred␀␡\n"


def test_two_episodes_stand_beside_each_other_from_their_divergence(
    made: Made, viewer_client: Client
) -> None:
    bare = Episode.objects.get(round=made.rounds[0], purpose="bare", task_id=4)
    masked = Episode.objects.get(round=made.rounds[0], purpose="masked", task_id=4)
    trace = make_trace("x", 4, 0, [], success=False)
    trace["steps"][2]["model"]["tool_calls"][0]["arguments"] = {"value": "size=m"}
    lines = masked.file.read_text().splitlines()
    lines[masked.line] = json.dumps(trace)
    masked.file.write_text("\n".join(lines) + "\n")
    with CaptureQueriesContext(connection) as queries:
        answer = viewer_client.get(f"/episodes/{bare.pk}/?with={masked.pk}")
    asked = questions(queries)
    assert len(asked) <= 12, asked
    text = " ".join(answer.content.decode().split())
    assert text.count("A and B identical") == 3  # the last turn is the same again
    assert "First divergence, turn 3: the same page, another choice." in text
    assert text.index('id="t2"') < text.index('id="divergence"') < text.index('id="t3"')
    assert "size=s / click size=m" in text
    same = viewer_client.get(f"/episodes/{bare.pk}/?with={bare.pk}").content.decode()
    assert 'id="divergence"' not in same


def test_only_episodes_of_the_same_task_are_compared(made: Made, viewer_client: Client) -> None:
    bare = Episode.objects.get(round=made.rounds[0], purpose="bare", task_id=4)
    masked = Episode.objects.get(round=made.rounds[0], purpose="masked", task_id=4)
    other = Episode.objects.filter(purpose="bare").exclude(task_id=4).order_by("pk")[0]
    for asked, words in (
        (other.pk, "of another task"),
        (99_999, "no such"),
        ("x", "is not a whole number"),
    ):
        address = f"/episodes/{bare.pk}/?with={asked}"
        answer = viewer_client.get(address)
        assert answer.status_code == 400 and words in answer.content.decode()
        answer = viewer_client.get(f"{address}&format=json")
        assert answer.status_code == 400 and words in answer.json()["error"]
    elsewhere = Experiment.objects.create(name="elsewhere")
    Episode.objects.filter(pk=masked.pk).update(experiment=elsewhere, instruction=bare.instruction)
    assert viewer_client.get(f"/episodes/{bare.pk}/?with={masked.pk}").status_code == 200
    Episode.objects.filter(pk=masked.pk).update(instruction="something else")
    assert viewer_client.get(f"/episodes/{bare.pk}/?with={masked.pk}").status_code == 400


def test_a_comparison_as_json_says_where_the_two_differ(made: Made, viewer_client: Client) -> None:
    bare = Episode.objects.get(round=made.rounds[0], purpose="bare", task_id=4)
    masked = Episode.objects.get(round=made.rounds[0], purpose="masked", task_id=4)
    trace = make_trace("x", 4, 0, [], success=False)
    trace["steps"][2]["model"]["tool_calls"][0]["arguments"] = {"value": "size=m"}
    lines = masked.file.read_text().splitlines()
    lines[masked.line] = json.dumps(trace)
    masked.file.write_text("\n".join(lines) + "\n")
    address = f"/episodes/{bare.pk}/?format=json"
    data = viewer_client.get(f"{address}&with={masked.pk}").json()
    assert (data["id"], data["with"], data["divergence"]) == (bare.pk, masked.pk, 3)
    assert "the same page, another choice" in data["fork"]
    assert "fork" not in viewer_client.get(address).json()


def test_a_shorter_and_a_longer_episode_stand_beside_each_other(
    made: Made, viewer_client: Client
) -> None:
    bare = Episode.objects.get(round=made.rounds[0], purpose="bare", task_id=4)
    masked = Episode.objects.get(round=made.rounds[0], purpose="masked", task_id=4)
    trace = make_trace("x", 4, 0, [])
    trace["steps"] = trace["steps"][:2]
    lines = masked.file.read_text().splitlines()
    lines[masked.line] = json.dumps(trace)
    masked.file.write_text("\n".join(lines) + "\n")
    for one, other, first, side in ((bare, masked, "t3", "A"), (masked, bare, "b3", "B")):
        text = viewer_client.get(f"/episodes/{one.pk}/?with={other.pk}").content.decode()
        assert f'href="#{first}"><span class="tn">3{side}</span>' in text
        assert f">Turn 3 of {side}</a>" in text and ">Turn 3</a>" not in text
        training = text[text.index('<h2 id="tk">') :].split("</header>")[0]
        assert '<span class="ab">A</span>' in training
        assert text.count("no turn at this height") == 2


def test_a_comparison_offers_an_episode_that_ended_otherwise(
    made: Made, viewer_client: Client
) -> None:
    for episode in Episode.objects.filter(purpose="train").order_by("pk")[:12]:
        group = Episode.objects.filter(group_index=episode.group_index, purpose="train")
        unlike = group.exclude(success=episode.success).order_by("sample_id").first()
        if unlike is not None:
            assert f"with={unlike.pk}#divergence" in page(viewer_client, episode)


def test_first_and_last_of_a_list_have_no_further_neighbour(
    made: Made, viewer_client: Client
) -> None:
    newest = Episode.objects.filter(purpose="masked").order_by("-pk")[0]
    text = page(viewer_client, newest)
    assert 'rel="prev" role="link" aria-disabled="true"' in text
    assert 'rel="next" href="' in text


def test_a_comparison_says_which_chunks_each_saw_and_what_each_bought(
    made: Made, operator_client: Client, viewer_client: Client
) -> None:
    bare = Episode.objects.get(round=made.rounds[0], purpose="bare", task_id=4)
    masked = Episode.objects.filter(round=made.rounds[0], purpose="masked", task_id=4)[0]
    title, skill_id = CHUNKS[0][1], CHUNKS[0][0]
    lines = masked.file.read_text().splitlines()
    trace = make_trace("x", 4, 0, [CHUNKS[0]])
    trace["final"]["purchase"]["price"] = 99
    lines[masked.line] = json.dumps(trace)
    masked.file.write_text("\n".join(lines) + "\n")
    path = f"/episodes/{bare.pk}/?with={masked.pk}"
    text = " ".join(operator_client.get(path).content.decode().split())
    assert "chunks of either prompt" in text and f'class="id">{skill_id}</span>' in text
    shown = text[text.index(title) : text.index("</summary>", text.index(title))]
    assert '<span class="ab B">B</span>' in shown and '<span class="ab">A</span>' not in shown
    price = text[text.index("price</th>") :].split("</tbody>")[0]
    assert "99 CNY" in price and "≤ 27 CNY" in price
    assert price.count("<td") == 3 and 'class="bad"' in price
    assert "Bought and wanted" not in viewer_client.get(path).content.decode()


def test_arms_and_checkpoints_of_one_task_are_told_apart_in_words(
    made: Made, viewer_client: Client
) -> None:
    bare = Episode.objects.get(round=made.rounds[0], purpose="bare", task_id=4)
    Episode.objects.filter(pk=bare.pk).update(checkpoint="local-1")
    for purpose, round_ in (("baseline", made.rounds[0]), ("bare", made.rounds[1])):
        values = {"purpose": purpose, "round_id": round_.pk, "checkpoint": f"local-{purpose}"}
        copy = Episode.objects.get(pk=bare.pk)
        for name, value in values.items():
            setattr(copy, name, value)
        copy.pk, copy.line = None, 900 + len(purpose)
        copy.save()
    text = " ".join(page(viewer_client, bare).split())
    assert "start, bare" in text and "start, before training" in text
    assert "round 1, after training" in text and "local-ba" not in text.replace('"local-', "")


def test_a_chunk_leads_to_a_replay_without_it_and_an_absent_one_to_one_with_it(
    made: Made, operator_client: Client
) -> None:
    episode = Episode.objects.filter(purpose="train", skill_count__range=(1, 8)).order_by("pk")[0]
    text = page(operator_client, episode)
    here = episode.skill_ids[0]
    absent, title, _effect = next(c for c in CHUNKS if c[0] not in episode.skill_ids)
    replay = f"/episodes/{episode.pk}/replay/"
    assert f'href="{replay}?without={here}"' in text
    assert f'href="{replay}?with={absent}"' in text and f">{title}</a>" in text
    form = operator_client.get(f"{replay}?without={here}&with={absent}").content.decode()
    asked = set(re.findall(r'name="chunk" value="([^"]*)" checked', form))
    assert asked == {*episode.skill_ids, absent} - {here}
