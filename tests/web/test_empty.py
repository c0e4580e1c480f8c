"""Pages of an instance in which nothing has happened yet say what to do."""

from __future__ import annotations

import pytest
from django.test import Client

from intraskill_web.experiments.flow import new_round
from intraskill_web.experiments.models import Experiment


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/", "No experiment yet"),
        ("/gates/", "No gate has run"),
        ("/skills/", "No skill version yet"),
        ("/episodes/", "No episode yet"),
        ("/jobs/", "Nothing runs and nothing waits."),
    ],
)
def test_an_empty_list_says_so(viewer_client: Client, path: str, words: str) -> None:
    assert words in viewer_client.get(path).content.decode()


def test_the_first_page_names_the_command_of_the_demo(viewer_client: Client) -> None:
    assert "manage.py demo" in viewer_client.get("/").content.decode()


def test_an_experiment_and_a_round_open_before_anything_was_done(viewer_client: Client) -> None:
    experiment = Experiment.objects.create(name="fresh", rounds_planned=2)
    assert viewer_client.get("/experiments/fresh/").status_code == 200
    new_round(experiment, 0)
    text = viewer_client.get("/experiments/fresh/rounds/0/").content.decode()
    assert "The curriculum is not frozen yet." in text
    assert "No step has finished." in text
    assert viewer_client.get("/experiments/fresh/zoom/").status_code == 200
    assert viewer_client.get("/experiments/fresh/rounds/0/panels/outcome/").status_code == 200
    assert viewer_client.get("/experiments/fresh/rounds/0/panels/inclusion/").status_code == 404
