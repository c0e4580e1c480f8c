"""A trace is what a model wrote: whatever it holds, every page that reads it shows it inert.

NUL bytes, halves of surrogate pairs, ANSI, RTL, markup, ten megabytes in a turn, numbers that are
none, nesting without end: on the episode, beside another, as tokens, as text, as JSON, in exports.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from intraskill_web.episodes.models import Episode
from tests.web.factories import Made
from tests.web.html import Page
from tests.web.traces import make_trace

NASTY = "<script>alert(1)</script>\x00\x1b[31m\x1b]8;;http://x\x07\u202egnirts\ud800 {{ 7|add:7 }}"
PAGES = ["", "?with={other}", "?format=json", "tokens/", "tokens/?format=json", "replay/",
         "replay/?format=json", "turns/2.txt"]  # fmt: skip
Trace = dict[str, Any]


def write(episode: Episode, trace: Trace) -> None:
    """Put ``trace`` where the row says, escapes and all."""
    text = json.dumps(trace) + "\n"
    episode.file.write_bytes(gzip.compress(("\n" * episode.line + text).encode()))


@pytest.fixture
def pair(made: Made) -> list[Episode]:
    """Two siblings of a group, in a file that a test writes anew."""
    return list(Episode.objects.filter(purpose="train", step=1).order_by("pk")[:2])


def everywhere(value: Any) -> Any:
    """``value`` with every text turned nasty; keys and identifiers stay."""
    if isinstance(value, str):
        return f"{value} {NASTY}"
    if isinstance(value, list):
        return [everywhere(item) for item in value]
    if isinstance(value, dict):
        return {f"{k}{NASTY}" if k == "size" else k: everywhere(v) for k, v in value.items()}
    return value


def nasty(trace: Trace) -> Trace:
    keep = {key: trace[key] for key in ("schema_version", "layout", "job", "tokens")}
    for step in trace["steps"]:
        state = step["environment"]["observation_state"]
        state |= everywhere(state) | {"page_type": state["page_type"]}
    steps = [
        {
            **everywhere(step),
            "environment": {**everywhere(step["environment"]), **{
                "observation_state": step["environment"]["observation_state"]}},
        }
        for step in trace["steps"]
    ]  # fmt: skip
    return {**everywhere(trace), **keep, "steps": steps}


def odd_numbers(trace: Trace) -> Trace:
    trace["steps"][0]["model"]["usage"] = {"completion_tokens": 10**30}
    trace["steps"][1]["model"]["latency_ms"] = float("nan")
    trace["tokens"] |= {"log_prob_mean": float("inf"), "sampled": -1, "total": 1e308}
    trace["final"]["reward"] = float("-inf")
    return trace


def endless_numbers(trace: Trace) -> Trace:
    trace["duration_ms"] = trace["final"]["reward"] = 10**400  # no float holds it
    trace["final"]["reward_detail"]["r_att"] = -(10**400)
    trace["steps"][0]["model"]["latency_ms"] = 10**400
    return trace


def deep(trace: Trace) -> Trace:
    nested: Any = "x"
    for _ in range(300):
        nested = [nested]
    trace["steps"][1]["model"]["tool_calls"][0]["arguments"] = {"value": nested}
    return trace


def wrong_kinds(trace: Trace) -> Trace:
    trace["steps"] = [None, 3, [], {"model": [], "environment": "x", "observation": {"a": [1]}}]
    trace["conversation"] = [[], "x", {"role": None, "content": {"a": 1}}]
    trace["selected_skills"] = {"a": 1}
    trace["reset"], trace["final"], trace["error"] = [], "over", ["boom"]
    return trace


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("spoil", [nasty, odd_numbers, endless_numbers, deep, wrong_kinds])
def test_no_page_fails_or_runs_anything(
    pair: list[Episode], operator_client: Client, spoil: Callable[[Trace], Trace], path: str
) -> None:
    episode, other = pair
    write(episode, spoil(make_trace("evil", 1, 0, [("x", "Title", 0.1)])))
    answer = operator_client.get(f"/episodes/{episode.pk}/{path.format(other=other.pk)}")
    if path.endswith(".txt"):  # as text, or not there
        assert answer.status_code in (200, 404)
        assert answer.status_code == 404 or answer["Content-Type"].startswith("text/plain")
        return
    assert answer.status_code == 200
    html = answer.content.decode()
    if "json" in path:
        json.loads(html)
        return
    assert Page(html).policy_faults() == []
    assert "<script>alert" not in html and "\x00" not in html and "\x1b" not in html


def test_what_is_nasty_is_seen_as_it_is(pair: list[Episode], operator_client: Client) -> None:
    episode, other = pair
    write(episode, nasty(make_trace("evil", 1, 0, [("x", "Title", 0.1)])))
    for path in ("", f"?with={other.pk}"):
        html = operator_client.get(f"/episodes/{episode.pk}/{path}").content.decode()
        assert "␛[31m" in html and "␀" in html and "{{ 7|add:7 }}" in html


def test_a_turn_of_ten_megabytes_opens_and_is_cut(
    pair: list[Episode], viewer_client: Client
) -> None:
    episode, other = pair
    huge = "<b>\x00" + "x" * 10_000_000
    long = "<b>\x00长" * 30_000
    trace = make_trace("long", 1, 0, [], content=huge)
    trace["steps"][2]["model"]["tool_calls"][0] |= {"name": long, "arguments": long}
    trace["steps"][2]["protocol_error"] = {"code": long, "message": long}
    trace["reset"]["user_persona"] = {long: long}
    trace["steps"][0]["environment"]["observation_state"]["products"][0]["title"] = long
    trace["error"] = {"message": long, "traceback": long}
    write(episode, trace)
    for path in ("", f"?with={other.pk}", f"?with={other.pk}&row=2"):
        answer = viewer_client.get(f"/episodes/{episode.pk}/{path}")
        assert answer.status_code == 200 and len(answer.content) < 2_000_000
    whole = viewer_client.get(f"/episodes/{episode.pk}/turns/2.txt")
    assert len(whole.content.decode()) > 9_999_999


def test_exports_hold_what_was_said_and_no_formula(
    pair: list[Episode], viewer_client: Client
) -> None:
    said = '=HYPERLINK("http://x")\x1b[31m\u202e<script>alert(1)</script>'
    Episode.objects.filter(pk=pair[0].pk).update(instruction=said)
    query = {"experiment": pair[0].experiment.name, "step": "1"}
    csv = viewer_client.get("/episodes/export.csv", query).getvalue().decode()
    assert "'=HYPERLINK" in csv
    lines = viewer_client.get("/episodes/export.jsonl", query).getvalue().decode().splitlines()
    assert said in [json.loads(line)["instruction"] for line in lines]
    assert viewer_client.get("/episodes/export.parquet", query).getvalue()[:4] == b"PAR1"
