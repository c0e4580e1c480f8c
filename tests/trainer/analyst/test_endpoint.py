"""The analyst on a server: cards from conversations, whatever the server does in between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.analyst import fake_endpoint
from tests.trainer.analyst.conftest import Configure
from tests.trainer.analyst.fake_endpoint import FakeEndpoint, call, card, investigator, merger, says
from trainer.analyst.endpoint.client import retry_after
from trainer.analyst.run import run_analysis
from trainer.errors import IncompleteError, InputError
from trainer.files import read_json, read_jsonl
from trainer.gate.pool import load_pool


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEndpoint]:
    monkeypatch.setenv("ANALYST_TEST_KEY", "secret-key-of-the-test")
    monkeypatch.setattr("trainer.analyst.endpoint.client.FIRST_WAIT", 0.01)
    with FakeEndpoint().running() as running:
        yield running


def endpoint(server: FakeEndpoint, **changes: Any) -> dict[str, Any]:
    settings = {
        "base_url": server.url,
        "model": "fake-1",
        "api_key_env": "ANALYST_TEST_KEY",
        "timeout_seconds": 1.0,
        "prices": {"input": 1.0, "cached_input": 0.5, "output": 10.0},
    }
    return {"kind": "endpoint", "endpoint": {**settings, **changes}}


def cards_in(folder: Path) -> list[dict[str, Any]]:
    return list(read_jsonl(folder / "analysis" / "failure_cards.jsonl"))


def test_a_round_becomes_cards_and_a_pool(
    server: FakeEndpoint, round_folder: Path, configure: Configure
) -> None:
    summary = run_analysis(configure(round_folder, endpoint(server)))
    cards = cards_in(round_folder)
    assert len({row["card_id"] for row in cards}) == len(cards) == 6
    for row in cards:
        assert row["status"] == "PROPOSE_ADD" and row["eligible_for_consolidation"]
        assert row["successful_counterfactual_trials"] == 1
        assert row["terminal_trials"][0]["reward_detail"]["r_success"] == 1
        assert row["accounting"]["calls"] == len(row["audit_transcript"])
    pool = load_pool(round_folder / "analysis" / "candidate_pool.json")
    assert [c.content for c in pool.candidates] == [fake_endpoint.SENTENCE]
    assert pool.candidates[0].metadata["evidence_card_ids"] == sorted(r["card_id"] for r in cards)
    assert (summary["triage_groups"], summary["analyzed_cards"]) == (6, 6)
    assert (summary["eligible_cards"], summary["candidates"]) == (6, 1)


def test_a_candidate_on_too_few_tasks_is_marked_or_left_out(
    server: FakeEndpoint, round_folder: Path, configure: Configure
) -> None:
    settings = {**endpoint(server), "minimum_tasks": 7}
    summary = run_analysis(configure(round_folder, settings))
    assert (summary["candidates"], summary["low_support_candidates"]) == (1, 1)
    summary = run_analysis(configure(round_folder, {**settings, "low_support": "leave_out"}))
    assert (summary["candidates"], len(summary["evidence_only_card_ids"])) == (0, 6)
    assert summary["notes"] == ["Price and budget: rests on 6 tasks, 7 are asked for"]


def test_tokens_and_cost_are_counted_for_every_card(
    server: FakeEndpoint, round_folder: Path, configure: Configure
) -> None:
    summary = run_analysis(configure(round_folder, endpoint(server)))
    calls = len(server.requests)
    assert summary["accounting"]["calls"] == calls
    assert summary["accounting"]["prompt_tokens"] == 100 * calls
    assert summary["accounting"]["completion_tokens"] == 20 * calls
    assert summary["accounting"]["cached_tokens"] == 40 * calls
    one = (60 * 1.0 + 40 * 0.5 + 20 * 10.0) / 1e6
    assert summary["accounting"]["cost"] == pytest.approx(one * calls, abs=1e-6)


def test_every_request_and_reply_is_in_a_transcript_and_the_key_in_none(
    server: FakeEndpoint, round_folder: Path, configure: Configure
) -> None:
    run_analysis(configure(round_folder, endpoint(server)))
    files = sorted((round_folder / "analysis" / "transcripts").glob("*.jsonl"))
    assert len(files) == 7
    seen = 0
    for path in files:
        messages: list[Any] = []
        for row in read_jsonl(path):
            messages = [*messages[: row["messages_before"]], *row["messages"]]
            body = next(request for request in server.requests if request["messages"] == messages)
            assert body["model"] == row["settings"]["model"]
            assert row["reply"]["tool_calls"]
            seen += 1
    assert seen == len(server.requests)
    everything = "".join(
        path.read_text() for path in (round_folder / "analysis").rglob("*") if path.is_file()
    )
    assert "secret-key-of-the-test" not in everything


TRANSPORT = ("429", "500", "503", "408", "timeout", "truncated", "no_choice", "slow_stream")
MODEL = ("two_tools", "wrong_tool", "bad_arguments", "refusal", "prose", "cut_off")


@pytest.mark.parametrize("stream", [True, False])
def test_no_card_is_lost_or_doubled_by_any_fault(
    server: FakeEndpoint, round_folder: Path, configure: Configure, stream: bool
) -> None:
    transport = [fault for fault in TRANSPORT if stream or fault != "slow_stream"]
    server.faults = dict(enumerate([*transport, *MODEL], start=3))
    summary = run_analysis(configure(round_folder, endpoint(server, stream=stream)))
    cards = cards_in(round_folder)
    assert sorted(row["status"] for row in cards) == ["PROPOSE_ADD"] * 6
    assert len({row["card_id"] for row in cards}) == 6
    assert summary["candidates"] == 1
    assert summary["accounting"]["failed_attempts"] == len(transport)
    assert summary["accounting"]["calls"] == len(server.requests) - len(transport)
    problems = [note["problem"] for row in cards for note in row["audit_transcript"]]
    assert len([problem for problem in problems if problem]) == len(MODEL)
    assert set(server.answered.values()) == {1}, "no answered call was made again"


ODD = (
    '{"status": NaN}',
    '{"status": ' + "[" * 3000 + "]" * 3000 + "}",
    '{"query": "\\ud800"}',
    '{"\\udfff": 1e999}',
)


@pytest.mark.parametrize("stream", [True, False])
def test_nothing_that_a_model_can_write_loses_a_card(
    server: FakeEndpoint, round_folder: Path, configure: Configure, stream: bool
) -> None:
    """Numbers that JSON lacks, halves of surrogate pairs, and nesting without end."""
    told: list[str] = []

    def odd(request: dict[str, Any]) -> dict[str, Any]:
        names = {tool["function"]["name"] for tool in request["tools"]}
        place = (len(request["messages"]) - 2) // 2
        if "submit_candidates" not in names and place < len(ODD):
            told.append(ODD[place])
            name = "search" if "search" in names else "click"
            return says(call(name, ODD[place], "c\udc00"), content="half \ud83d")
        if "submit_candidates" not in names:
            return says(call("submit_failure_card", card("NO_PROPOSAL", note="\ud800")))
        return merger(request)

    server.model = odd
    run_analysis(configure(round_folder, endpoint(server, stream=stream)))
    cards = cards_in(round_folder)
    assert len(told) >= len(ODD)
    assert [row["status"] for row in cards] == ["NO_PROPOSAL"] * 6
    assert set(server.answered.values()) == {1}


def test_a_protocol_error_costs_a_turn_and_is_answered(
    server: FakeEndpoint, round_folder: Path, configure: Configure
) -> None:
    server.faults = {1: "two_tools"}
    settings = {**endpoint(server), "limits": {"concurrency": 1}}
    run_analysis(configure(round_folder, settings))
    answers = [m for m in server.requests[1]["messages"] if m["role"] == "tool"]
    assert [answer["tool_call_id"] for answer in answers] == ["c1", "c2"]
    told = json.loads(answers[0]["content"])
    assert told["error"] == "tool_call_count" and told["turns_left"] == 19
    assert cards_in(round_folder)[0]["audit_transcript"][0]["problem"] == "tool_call_count"


def test_a_model_that_never_hands_in_a_card_leaves_an_error_and_is_asked_again_later(
    server: FakeEndpoint, round_folder: Path, configure: Configure
) -> None:
    settings = {**endpoint(server), "limits": {"turns": 3, "concurrency": 1}}
    server.model = lambda request: says(content="hm", finish="stop")
    summary = run_analysis(configure(round_folder, settings))
    assert {row["status"] for row in cards_in(round_folder)} == {"ANALYST_ERROR"}
    assert {row["error"]["type"] for row in cards_in(round_folder)} == {"TurnLimitReached"}
    assert (summary["status"], summary["analyst_errors"], summary["candidates"]) == (
        "complete",
        6,
        0,
    )
    only = [t["function"]["name"] for t in server.requests[2]["tools"]]
    assert only == ["submit_failure_card"], "the last turn offers nothing else"
    first = len(server.requests)
    server.model = lambda request: says(call("submit_failure_card", card("NO_PROPOSAL")))
    summary = run_analysis(configure(round_folder, settings))
    assert len(server.requests) == first + 6
    assert (summary["analyst_errors"], summary["analyzed_cards"]) == (0, 6)


def test_a_card_that_breaks_its_contract_is_named_and_can_be_mended(
    server: FakeEndpoint, round_folder: Path, configure: Configure
) -> None:
    def careless(request: dict[str, Any]) -> dict[str, Any]:
        if len(request["messages"]) == 2:
            return says(call("submit_failure_card", card(applicable_when=" ")))
        return says(call("submit_failure_card", card("NO_PROPOSAL")))

    server.model = careless
    run_analysis(configure(round_folder, {**endpoint(server), "limits": {"concurrency": 1}}))
    told = json.loads(server.requests[1]["messages"][-1]["content"])
    assert told["errors"] == ["deployable_abstraction.applicable_when must be a non-empty text"]
    assert {row["status"] for row in cards_in(round_folder)} == {"NO_PROPOSAL"}


def test_proposals_that_rest_on_nothing_are_turned_down_with_every_reason(
    server: FakeEndpoint, round_folder: Path, configure: Configure
) -> None:
    proposal = card("PROPOSE_REWRITE", target_chunk_id="nobody", proposed_content="see task 12")
    server.model = lambda request: says(call("submit_failure_card", proposal))
    run_analysis(configure(round_folder, endpoint(server)))
    for row in cards_in(round_folder):
        assert row["status"] == "NO_PROPOSAL" and not row["eligible_for_consolidation"]
        assert row["forced_no_proposal_reasons"] == [
            "proposal_without_grounded_live_action",
            "proposal_without_successful_counterfactual",
            "invalid_rewrite_target",
            "gold_firewall_violation",
        ]
        assert row["forced_no_proposal_reason"] == "gold_firewall_violation"
        assert row["deployable_abstraction"] == {"failure_mechanism": ""}


def test_a_finished_analysis_is_not_paid_for_twice(
    server: FakeEndpoint, round_folder: Path, configure: Configure
) -> None:
    settings = endpoint(server)
    first = run_analysis(configure(round_folder, settings))
    asked = len(server.requests)
    assert run_analysis(configure(round_folder, settings)) == first
    assert len(server.requests) == asked


def test_an_answered_call_is_never_asked_again(
    server: FakeEndpoint, round_folder: Path, configure: Configure
) -> None:
    settings = {**endpoint(server, transport_retries=0), "limits": {"concurrency": 1}}
    server.faults = {11: "500"}
    run_analysis(configure(round_folder, settings))
    assert [row["status"] for row in cards_in(round_folder)].count("ANALYST_ERROR") == 1
    run_analysis(configure(round_folder, settings))
    assert set(server.answered.values()) == {1}
    assert len([r for r in cards_in(round_folder) if r["status"] == "PROPOSE_ADD"]) == 6


def test_the_number_of_conversations_at_once_is_bounded(
    server: FakeEndpoint, round_folder: Path, configure: Configure
) -> None:
    limits = {"concurrency": 4, "environment_slots": 2}
    run_analysis(configure(round_folder, {**endpoint(server), "limits": limits}))
    assert server.most_at_once <= 2


def test_the_budget_is_kept_and_more_of_it_continues_the_work(
    server: FakeEndpoint, round_folder: Path, configure: Configure
) -> None:
    tight = endpoint(server, token_budget=18_000)
    summary = run_analysis(configure(round_folder, tight))
    before = len(server.requests)
    assert 0 < before < 37, "a whole round takes more calls"
    assert summary["status"] in ("partial", "failed")
    assert summary["error"]["type"] == "BudgetSpent"
    summary = run_analysis(configure(round_folder, endpoint(server)))
    assert (summary["status"], summary["candidates"]) == ("complete", 1)
    assert set(server.answered.values()) == {1}
    assert len(server.requests) > before


def test_a_refused_key_ends_the_analysis_and_keeps_the_ledger(
    server: FakeEndpoint, round_folder: Path, configure: Configure
) -> None:
    history = [{"candidate_id": "online-1", "validation_result": "retired"}]
    (round_folder / "ledger.jsonl").write_text(json.dumps(history[0]) + "\n")
    server.faults = dict.fromkeys(range(1, 100), "401")
    ledger = {"ledger_history": round_folder / "ledger.jsonl"}
    summary = run_analysis(configure(round_folder, endpoint(server), **ledger))
    assert (summary["status"], summary["candidates"]) == ("failed", 0)
    assert summary["error"]["type"] == "ServerRefuses" and "401" in summary["error"]["message"]
    assert list(read_jsonl(round_folder / "analysis" / "proposal_ledger.jsonl")) == history
    assert load_pool(round_folder / "analysis" / "candidate_pool.json").candidates == ()
    assert not (round_folder / "analysis" / "failure_cards.jsonl").exists()
    stop = {**endpoint(server), "on_failure": "stop"}
    with pytest.raises(IncompleteError, match="401"):
        run_analysis(configure(round_folder, stop, **ledger))


def test_without_a_key_nothing_is_asked(
    server: FakeEndpoint,
    round_folder: Path,
    configure: Configure,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ANALYST_TEST_KEY")
    with pytest.raises(InputError, match="ANALYST_TEST_KEY"):
        run_analysis(configure(round_folder, endpoint(server)))
    assert server.requests == []


NOW, LATER = "Wed, 21 Oct 2099 07:28:00 GMT", "Wed, 21 Oct 2099 07:28:07 GMT"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00"}, 0.0),
        ({"retry-after": LATER, "date": NOW}, 7.0),
        ({"retry-after": NOW, "date": LATER}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT", "date": "now"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_the_server_says_how_long_to_wait(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after(headers) == expected


def test_the_wait_that_the_server_asks_for_is_kept(
    server: FakeEndpoint,
    round_folder: Path,
    configure: Configure,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits: list[float] = []
    monkeypatch.setattr("trainer.analyst.endpoint.client.patient_sleep", waits.append)
    server.retry_after = "7"
    server.faults = {1: "429", 2: "500", 3: "500"}
    run_analysis(configure(round_folder, {**endpoint(server), "limits": {"concurrency": 1}}))
    assert waits == [7.0, 0.02, 0.04]


def test_the_compiler_is_told_every_broken_rule_until_it_is_right(
    server: FakeEndpoint, round_folder: Path, configure: Configure
) -> None:
    asked: list[list[dict[str, Any]]] = []

    def learning(request: dict[str, Any]) -> dict[str, Any]:
        names = {tool["function"]["name"] for tool in request["tools"]}
        if "submit_candidates" not in names:
            return investigator(request)
        asked.append(request["messages"])
        good = merger(request)
        arguments = json.loads(good["message"]["tool_calls"][0]["function"]["arguments"])
        item = arguments["candidates"][0]
        if len(asked) == 1:
            item |= {"procedure": ["See the ASIN wisely."], "title": ""}
            item["evidence_card_ids"] = [*item["evidence_card_ids"][:2], "card-0"]
        elif len(asked) == 2:
            item["procedure"] = ["Put the preferred brand in the query."]
        return says(call("submit_candidates", arguments))

    server.model = learning
    summary = run_analysis(configure(round_folder, endpoint(server)))
    assert summary["compile_attempts"] == len(asked) == 3
    first = json.loads(asked[1][-1]["content"])
    assert first["errors"][0] == "candidates[0]: title must be a non-empty text"
    assert "unknown card id 'card-0'" in first["errors"]
    assert sum("neither cited nor listed" in error for error in first["errors"]) == 4
    second = json.loads(asked[2][-1]["content"])
    assert [len(messages) for messages in asked] == [2, 4, 4], "only the latest result is shown"
    assert any("says what brand says already" in error for error in second["errors"])


def test_a_compiler_that_never_gets_it_right_leaves_a_pool_without_candidates(
    server: FakeEndpoint, round_folder: Path, configure: Configure
) -> None:
    def hopeless(request: dict[str, Any]) -> dict[str, Any]:
        names = {tool["function"]["name"] for tool in request["tools"]}
        if "submit_candidates" not in names:
            return investigator(request)
        return says(call("submit_candidates", {"candidates": []}))

    server.model = hopeless
    summary = run_analysis(configure(round_folder, endpoint(server)))
    assert (summary["status"], summary["candidates"]) == ("failed", 0)
    assert "5 attempts broke the contract" in summary["error"]["message"]
    assert read_json(round_folder / "analysis" / "candidate_pool.json")["candidates"] == []
    assert len(cards_in(round_folder)) == 6
