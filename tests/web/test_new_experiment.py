"""The page that makes an experiment: what differs and what it takes is seen before it is made."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from django.test import Client

from intraskill_web.experiments.making import create_experiment
from intraskill_web.experiments.models import Experiment
from intraskill_web.experiments.sweeps import base_config

PATH = "/new/"
SEED = 2**63 - 1
pytestmark = pytest.mark.usefixtures("db", "home")


def body(answer: object) -> str:
    return answer.content.decode()  # type: ignore[attr-defined]


def filled(client: Client, **changed: str) -> dict[str, str]:
    """The form as it opens, with some fields typed over."""
    form = client.get(f"{PATH}?format=json").json()
    values = {key: form[key] for key in ("base", "name", "seed", "config")}
    return values | {"name": "mine"} | changed


def test_viewers_are_shown_why_not_and_may_not(viewer_client: Client) -> None:
    assert "Needs the role operator" in body(viewer_client.get("/"))
    assert viewer_client.get(PATH).status_code == 403
    assert viewer_client.post(PATH).status_code == 403


def test_an_experiment_is_made_once_its_difference_was_seen(operator_client: Client) -> None:
    form = filled(operator_client, seed="7")
    form["config"] = form["config"].replace("rounds: 4", "rounds: 2")
    shown = body(operator_client.post(PATH, form))
    assert "rounds" in shown and "seed" in shown
    assert not Experiment.objects.exists()
    (seen,) = re.findall(r'name="seen" value="(\w+)"', shown)
    other = operator_client.post(PATH, form | {"seen": seen, "seed": "8"})
    assert other.status_code == 200 and not Experiment.objects.exists()
    answer = operator_client.post(PATH, form | {"seen": seen})
    assert answer["Location"] == "/experiments/mine/"
    made = Experiment.objects.get()
    assert (made.rounds_planned, made.seed, made.owner.get_username()) == (2, 7, "olaf")  # type: ignore[union-attr]
    assert made.config["mask_seed"] != 20260830
    assert (Path(made.folder) / "start" / "checkpoint" / "checkpoint.json").is_file()


@pytest.mark.parametrize(
    ("changed", "field", "words"),
    [
        ({"name": "not/a name"}, "name", "Letters, digits"),
        ({"name": ""}, "name", "Letters, digits"),
        ({"seed": "-1"}, "seed", "-1 is not a whole number"),
        ({"config": "rounds: 0"}, "rounds", "greater than or equal to 1"),
        ({"config": "rouns: 3"}, "rouns", "none of the settings"),
        ({"config": "start: {skillbank: /etc/passwd}"}, "start", "none of the settings"),
        ({"config": "train: {steps: many}"}, "train.steps", "valid integer"),
        ({"config": "rounds: 99999999999999999999"}, "rounds", "less than or equal to 10000"),
        ({"config": "train: {steps: 3000000000}"}, "train.steps", "less than or equal to"),
        ({"config": "curriculum: {rho_min: 0.9, rho_max: 0.1}"}, "curriculum", "exceed rho_max"),
        ({"config": "[1"}, "config", "not valid YAML"),
        ({"config": "title: 2026-13-99"}, "config", "month must be in 1..12"),
        ({"config": "[" * 5000}, "config", "nested too deeply"),
        ({"config": r'title: "\0"'}, "config", "no file or database holds"),
        ({"config": r'title: "\ud800"'}, "config", "no file or database holds"),
        ({"config": "gate: &endless {standard: *endless}"}, "config", "more than 200000 values"),
        ({"base": "nobody"}, "base", "no such base"),
    ],
)
def test_a_bad_value_is_said_beside_what_was_typed(
    operator_client: Client, changed: dict[str, str], field: str, words: str
) -> None:
    form = filled(operator_client) | changed
    answer = operator_client.post(PATH, form)
    assert answer.status_code == 409
    (told,) = re.findall(r'role="alert">(.*?)</span>', body(answer), re.DOTALL)
    told = html.unescape(re.sub("<.*?>", "", told))
    assert told.startswith(field) and words in told
    typed = html.unescape(body(answer))
    assert all(value in typed for key, value in form.items() if key != "base")
    assert not Experiment.objects.exists()


def test_a_name_that_is_taken_is_refused(operator_client: Client) -> None:
    form = filled(operator_client)
    assert operator_client.post(f"{PATH}?format=json", form).json()["name"] == "mine"
    again = operator_client.post(f"{PATH}?format=json", form)
    assert again.status_code == 409
    assert "an experiment of this name exists" in again.json()["error"]


def test_a_clone_begins_with_the_settings_and_files_of_its_source(operator_client: Client) -> None:
    first = filled(operator_client, config="title: First\ntrain: {steps: 3}")
    operator_client.post(f"{PATH}?format=json", first)
    assert f'{PATH}?base=mine"' in body(operator_client.get("/experiments/mine/"))
    form = operator_client.get(f"{PATH}?base=mine&format=json").json()
    assert "steps: 3" in form["config"]
    clone = {"base": "mine", "name": "clone", "seed": form["seed"], "config": form["config"]}
    assert operator_client.post(f"{PATH}?format=json", clone).status_code == 200
    source, made = (Experiment.objects.get(name=name) for name in ("mine", "clone"))
    for key in source.config.keys() - {"name"}:
        assert made.config[key] == source.config[key], key
    files = [e.folder / "start" / "skillbank.json" for e in (source, made)]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_clone_keeps_a_seed_that_nobody_would_type(operator_client: Client) -> None:
    create_experiment(base_config("mini/quick").model_copy(update={"name": "far"}).with_seed(SEED))
    form = operator_client.get(f"{PATH}?base=far&format=json").json()
    assert form["seed"] == str(SEED)
    clone = {"base": "far", "name": "clone", "seed": form["seed"], "config": form["config"]}
    assert operator_client.post(f"{PATH}?format=json", clone).status_code == 200
    assert Experiment.objects.get(name="clone").seed == SEED


def test_an_unknown_base_is_said(operator_client: Client) -> None:
    answer = operator_client.get(f"{PATH}?base=nobody")
    assert answer.status_code == 409
    assert "no such base" in body(answer)


def test_a_base_whose_settings_another_version_wrote_is_said(operator_client: Client) -> None:
    operator_client.post(f"{PATH}?format=json", filled(operator_client))
    made = Experiment.objects.get()
    Experiment.objects.update(config={**made.config, "gone": 1})
    answer = operator_client.get(f"{PATH}?base=mine")
    assert answer.status_code == 409
    assert "settings of this base are not understood" in body(answer)
