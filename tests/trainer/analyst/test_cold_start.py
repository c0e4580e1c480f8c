"""The first skill from nothing: both channels, clusters, draft, by rules and on a server."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.analyst.fake_endpoint import FakeEndpoint, call, investigator, says
from tests.trainer.analyst.shoppers import trace_of
from tests.trainer.analyst.test_rules import FAULTS
from trainer.analyst.cold_start.clusters import batches_of, cluster_errors, cluster_id
from trainer.analyst.cold_start.draft import chunk_id, draft_bank, draft_errors
from trainer.analyst.cold_start.rules import deeds_of, public_goal
from trainer.analyst.cold_start.run import run_cold_start
from trainer.analyst.cold_start.settings import ColdStartConfig
from trainer.analyst.cold_start.success import lesson_errors
from trainer.analyst.compiler.style import ProcedureStyle
from trainer.analyst.firewall import Firewall
from trainer.analyst.rules.goal import goal_of
from trainer.analyst.rules.violations import turns_of
from trainer.errors import IncompleteError, InputError
from trainer.files import read_json, read_jsonl, write_jsonl
from trainer.gate.cold_start import parse_draft
from trainer.gate.pool import load_pool
from trainer.gate.slots import build_layout
from trainer.shop.world import World
from trainer.skills.bank import load_bank


@pytest.fixture
def bare_run(mini: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sixty bare episodes of shoppers with one or two faults, or none."""
    monkeypatch.setattr("trainer.analyst.cold_start.run.load_world", lambda *_args, **_kwargs: mini)
    rng = random.Random("bare run")
    tasks = mini.split("train")[:60]
    traces = [trace_of(mini, task, rng.sample(FAULTS, rng.randint(0, 2))) for task in tasks]
    write_jsonl(tmp_path / "run" / "traces.jsonl", traces)
    return tmp_path


def config(folder: Path, analyst: Any = "rule_based", **changes: Any) -> ColdStartConfig:
    return ColdStartConfig(
        stage="cold_start",
        name="c",
        output_dir=folder / "cold",
        run_dir=folder / "run",
        analyst=analyst,
        **changes,
    )


def test_both_channels_become_a_draft_that_the_policy_can_read(mini: World, bare_run: Path) -> None:
    summary = run_cold_start(config(bare_run))
    folder = bare_run / "cold"
    given = summary["input"]
    assert given["total"] == 60 and min(given["failure"], given["success"]) >= 10
    assert (summary["unique_analyzed"], summary["error_count"], summary["missing"]) == (60, 0, [])
    cards = list(read_jsonl(folder / "evidence_cards.jsonl"))
    assert {card["channel"] for card in cards} == {"success", "failure"}
    assert summary["evidence_cards"] == len(cards) > 60
    for card in cards:
        if card["channel"] == "failure":
            assert card["stage"] == "cold_start" and card["status"] != "PROPOSE_REWRITE"
    draft = read_json(folder / "initial_skill_draft.json")
    assert draft["schema_version"] == "shopsimrl-initial-skill-draft-v2"
    orders = [chunk["draft_order"] for chunk in draft["chunks"]]
    assert orders == list(range(1, len(orders) + 1)) and len(orders) <= 16
    bank = load_bank(folder / "initial_skillbank.json")
    assert [chunk.skill_id for chunk in bank.chunks] == [c["chunk_id"] for c in draft["chunks"]]
    assert all(chunk.metadata["draft_only"] is True for chunk in bank.chunks)
    texts = {chunk.content for chunk in bank.chunks}
    assert "Select the wanted colour before you buy." in texts
    clusters = read_json(folder / "evidence_clusters.json")
    cited = [name for chunk in draft["chunks"] for name in chunk["evidence_cluster_ids"]]
    everything = [*cited, *draft["evidence_only_cluster_ids"]]
    assert sorted(everything) == sorted(c["cluster_id"] for c in clusters)


def test_the_first_gate_finds_a_pool_of_the_draft(bare_run: Path) -> None:
    run_cold_start(config(bare_run))
    folder = bare_run / "cold"
    pool = load_pool(folder / "candidate_pool.json")
    bank = load_bank(folder / "initial_skillbank.json")
    assert [(c.skill_id, c.content) for c in pool.current] == [
        (c.skill_id, c.content) for c in bank.chunks
    ]
    assert pool.candidates == () and pool.current_skillbank_sha256 == bank.bank_sha256
    assert all("draft_only" not in chunk.metadata for chunk in pool.current)
    assert len(build_layout(pool).columns) == len(bank.chunks)
    draft = parse_draft(read_json(folder / "initial_skillbank.json"))
    assert [chunk.skill_id for chunk in draft.chunks] == [c.skill_id for c in bank.chunks]
    assert draft.budget == min(10, len(bank.chunks))


def test_repeating_a_cold_start_makes_no_card_again_and_the_same_draft(bare_run: Path) -> None:
    first = run_cold_start(config(bare_run))
    cards = (bare_run / "cold" / "failure_cards.jsonl").read_text()
    again = run_cold_start(config(bare_run))
    assert again["draft_sha256"] == first["draft_sha256"]
    assert (bare_run / "cold" / "failure_cards.jsonl").read_text() == cards


def test_the_success_analyst_sees_the_wishes_without_the_goal(mini: World) -> None:
    for task_id in mini.split("train")[:40]:
        trace = trace_of(mini, task_id, ())
        if trace["final"]["reward_detail"]["r_success"] != 1:
            continue
        blind = {**trace, "final": {k: v for k, v in trace["final"].items() if k != "goal"}}
        seen, private = (
            public_goal(blind, mini.catalogue),
            goal_of(mini.task(task_id), mini.catalogue),
        )
        assert (seen.brand, seen.options, seen.ceiling) == (
            private.brand,
            private.options,
            private.ceiling,
        )
        assert set(deeds_of(turns_of(trace), seen)) == set(deeds_of(turns_of(trace), private))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"job": {"task_id": 1, "split": "val"}}, "training tasks only"),
        ({"selected_skills": [{"skill_id": "a"}]}, "played with chunks"),
    ],
)
def test_traces_that_teach_nothing_honest_are_refused(
    mini: World, bare_run: Path, change: dict[str, Any], message: str
) -> None:
    trace = {**trace_of(mini, mini.split("train")[0], ()), **change}
    write_jsonl(bare_run / "run" / "traces.jsonl", [trace])
    with pytest.raises(InputError, match=message):
        run_cold_start(config(bare_run))


def test_without_traces_there_is_no_cold_start(bare_run: Path) -> None:
    (bare_run / "run" / "traces.jsonl").unlink()
    with pytest.raises(InputError, match="no traces of an evaluation"):
        run_cold_start(config(bare_run))


def test_ids_are_those_of_the_published_draft(published: Path) -> None:
    bank = read_json(published / "artifacts" / "cold-start" / "initial_skillbank.json")
    assert len(bank["skills"]) == 16
    for skill in bank["skills"]:
        title = skill["content"].split("\n")[0].removeprefix("### ")
        assert chunk_id(title, skill["metadata"]["evidence_cluster_ids"]) == skill["skill_id"]
    assert chunk_id("Brand in the query!", ["x"]) == "brand-in-the-query"
    assert cluster_id("success", 1, 2) == "success-batch-001-cluster-02"


def test_a_draft_bank_has_the_published_keys(published: Path) -> None:
    theirs = read_json(published / "artifacts" / "cold-start" / "initial_skillbank.json")
    chunk = {
        "chunk_id": "a",
        "draft_order": 1,
        "title": "t",
        "workflow_stage": "s",
        "content": "c",
        "evidence_cluster_ids": ["x"],
    }
    mine = draft_bank(
        {
            "schema_version": theirs["metadata"]["draft_schema_version"],
            "draft_sha256": "0",
            "gate_status": theirs["metadata"]["gate_status"],
            "active_skill_budget": 10,
            "chunks": [chunk],
        }
    )
    assert mine["bank_version"] == theirs["bank_version"]
    assert set(theirs["metadata"]) <= set(mine["metadata"])
    assert list(theirs["skills"][0]) == list(mine["skills"][0])
    assert set(theirs["skills"][0]["metadata"]) <= set(mine["skills"][0]["metadata"])


def test_batches_hold_forty_cards_and_clusters_keep_to_their_contract() -> None:
    cards = [{"card_id": f"c-{n:03d}"} for n in range(90)]
    assert [len(batch) for batch in batches_of(cards)] == [40, 40, 10]
    sound = {
        "workflow_stage": "s",
        "mechanism": "m",
        "applicable_when": "a",
        "procedure": ["p"],
        "verification": "v",
        "common_failure": "f",
        "evidence_card_ids": ["c-001"],
    }
    ids = ["c-001", "c-002"]
    assert cluster_errors([sound], ids) == []
    assert cluster_errors([sound] * 3, ids) == [
        "3 clusters, at most 2 are allowed",
        "card 'c-001' is used 3 times",
    ]
    assert cluster_errors([{**sound, "procedure": [], "evidence_card_ids": ["c-9"]}], ids) == [
        "clusters[0].procedure must be a non-empty list of non-empty texts",
        "unknown card id 'c-9'",
    ]


def test_lessons_keep_to_their_contract() -> None:
    names = (
        "mechanism",
        "applicable_when",
        "observed_evidence",
        "decisive_behavior",
        "generalizable_lesson",
    )
    sound = {**dict.fromkeys(names, "x"), "confidence": 0.5}
    assert lesson_errors([sound, sound]) == []
    assert lesson_errors([sound] * 3) == ["3 cards, at most 2 are allowed"]
    assert lesson_errors([{**sound, "confidence": 2}]) == [
        "cards[0].confidence must lie between 0 and 1"
    ]
    assert lesson_errors(None) == ["cards must be a list of objects"]


def test_every_cluster_is_used_once_in_a_draft() -> None:
    item = {
        "title": "价格",
        "workflow_stage": "决策",
        "applicable_when": "有预算",
        "procedure": ["核对价格"],
        "verification": "不超过",
        "common_failure": "直接购买",
        "evidence_cluster_ids": ["a"],
    }
    known: dict[str, dict[str, Any]] = {"a": {}, "b": {}}

    def errors(*chunks: dict[str, Any], rest: list[str]) -> list[str]:
        result = {"chunks": list(chunks), "evidence_only_cluster_ids": rest}
        return draft_errors(result, known, firewall=Firewall(), facts={}, style=ProcedureStyle())

    assert errors(item, rest=["b"]) == []
    assert errors(item, rest=[]) == ["cluster 'b' is neither cited nor listed as evidence only"]
    assert errors(item, rest=["b", "a"]) == ["cluster 'a' is used 2 times"]
    assert "0 chunks, from 1 to 16 are allowed" in errors(rest=["a", "b"])


def test_on_a_server_all_roles_are_played_and_nothing_is_asked_twice(
    bare_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANALYST_TEST_KEY", "k")
    with FakeEndpoint(model=everybody).running() as server:
        chat = {"base_url": server.url, "model": "fake-1", "api_key_env": "ANALYST_TEST_KEY"}
        settings = config(bare_run, {"kind": "endpoint", "endpoint": chat}, traces=16)
        summary = run_cold_start(settings)
        asked = len(server.requests)
        again = run_cold_start(settings)
        assert len(server.requests) == asked, "clusters and draft come from the transcripts"
        assert again["draft_sha256"] == summary["draft_sha256"]
        assert set(server.answered.values()) == {1}
        for request in server.requests:
            if names(request) == {"submit_success_cards"}:
                assert "goal_options" not in request["messages"][1]["content"]
    assert summary["input"]["total"] == summary["unique_analyzed"] == 16
    assert (summary["clusters"], summary["chunks"]) == (2, 1)


def test_a_server_that_refuses_leaves_no_half_draft(
    bare_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANALYST_TEST_KEY", "k")
    with FakeEndpoint(faults=dict.fromkeys(range(1, 50), "403")).running() as server:
        chat = {"base_url": server.url, "model": "fake-1", "api_key_env": "ANALYST_TEST_KEY"}
        with pytest.raises(IncompleteError, match="403"):
            run_cold_start(config(bare_run, {"kind": "endpoint", "endpoint": chat}, traces=8))
    assert not (bare_run / "cold" / "initial_skill_draft.json").exists()


def names(request: dict[str, Any]) -> set[str]:
    return {tool["function"]["name"] for tool in request["tools"]}


def everybody(request: dict[str, Any]) -> dict[str, Any]:
    """A model that plays every role of a cold start."""
    offered = names(request)
    payload = json.loads(request["messages"][1]["content"])
    sentence = "Check the price against the budget before you buy."
    shared = {
        "workflow_stage": "buy",
        "applicable_when": "the user has a budget",
        "procedure": [sentence],
        "verification": "the price stays within the budget",
        "common_failure": "buying at once",
    }
    if offered == {"submit_success_cards"}:
        lesson = {
            "mechanism": "compares the price with the budget",
            "applicable_when": "the user has a budget",
            "observed_evidence": "it did",
            "decisive_behavior": "reads the price",
            "generalizable_lesson": sentence,
            "confidence": 0.9,
        }
        return says(call("submit_success_cards", {"cards": [lesson]}))
    if offered == {"submit_clusters"}:
        ids = [card["card_id"] for card in payload["cards"]]
        cluster = {**shared, "mechanism": "price", "evidence_card_ids": ids}
        return says(call("submit_clusters", {"clusters": [cluster]}))
    if offered == {"submit_initial_skill"}:
        ids = [cluster["cluster_id"] for cluster in payload["clusters"]]
        chunk = {**shared, "title": "Price and budget", "evidence_cluster_ids": ids}
        result = {"chunks": [chunk], "evidence_only_cluster_ids": []}
        return says(call("submit_initial_skill", result))
    return investigator(request)
