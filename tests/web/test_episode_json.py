"""The JSON of an episode says what its trace says, whether its bytes are passed on or read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.test import Client

from intraskill_web.episodes import traces, views
from intraskill_web.episodes.listed import Listed, listed
from intraskill_web.episodes.models import Episode
from intraskill_web.episodes.prepare import prepare
from intraskill_web.episodes.publish import publish
from intraskill_web.experiments.models import Experiment
from tests.web.traces import make_trace

PLAIN = orjson.dumps(
    make_trace("e", 1, 0, [], content="水杯 " * 20)
    | {"final": {"goal": {"asin": "3"}, "reward": 1.0}}
)


def kept(line: bytes) -> Listed:
    """The row of a line as an ingest writes it."""
    experiment, _new = Experiment.objects.get_or_create(name="kept")
    entry = prepare(line, purpose="bare", arm="bare", groups={})
    entry.values["line"] = 0
    publish([entry], {"experiment_id": experiment.pk, "round_id": None, "path": "f"})
    row = listed(Episode.objects.latest("pk").pk)
    assert row is not None
    return row


def answer(client: Client, row: Listed) -> Any:
    return client.get(f"/episodes/{row.pk}/?format=json").json()


def odd(value: str) -> bytes:
    """The line with another value in it."""
    return PLAIN[:-1] + f',"odd":{value}}}'.encode()


def test_a_line_as_the_engines_write_it_is_passed_on_and_says_what_reading_it_says(
    db: None, home: Path, operator_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = kept(PLAIN + b"\r\n")
    assert traces.ready_trace(row) is not None
    found = answer(operator_client, row)
    assert found["trace"] == orjson.loads(PLAIN) and found["problem"] == ""
    monkeypatch.setattr(views, "ready_trace", lambda row: None)
    assert answer(operator_client, row) == found


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("NaN", None),
        ('"\\ud800"', "?"),
        ("1" + "0" * 30, 1e30),
        ('{"a":1,"a":2}', {"a": 2}),
        ("1e-05", 1e-5),
        (" 3", 3),
        ("[" * 300 + "]" * 300, None),
    ],
)
def test_a_line_that_an_answer_would_write_otherwise_is_read(
    db: None, home: Path, operator_client: Client, value: str, said: Any
) -> None:
    row = kept(odd(value))
    assert traces.ready_trace(row) is None
    assert answer(operator_client, row)["trace"].get("odd") == said


def test_who_may_not_see_the_goal_gets_no_bytes_with_it(
    db: None, home: Path, viewer_client: Client
) -> None:
    row = kept(PLAIN)
    assert traces.ready_trace(row) is not None
    body = viewer_client.get(f"/episodes/{row.pk}/?format=json").content
    assert "goal" not in json.loads(body)["trace"]["final"] and b'"asin": "3"' not in body
    assert json.loads(body)["trace"]["final"] == {"reward": 1.0}
