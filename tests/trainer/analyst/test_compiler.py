"""Compilation: the contract, what was tried before, and the rule-based merge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trainer.analyst.test_firewall import FACTS
from trainer.analyst.compiler.assemble import assemble
from trainer.analyst.compiler.compile import Compiled
from trainer.analyst.compiler.contract import Contract
from trainer.analyst.compiler.history import History, outcome_of, signature, similarity
from trainer.analyst.compiler.style import ProcedureStyle, SentenceStyle
from trainer.analyst.firewall import Firewall
from trainer.analyst.rules.compile import RuleBasedCompiler
from trainer.analyst.rules.mechanisms import mechanisms_of
from trainer.gate.pool import candidate_id
from trainer.shop.mini.words import vocabulary
from trainer.skills.types import Chunk

CARDS = ("card-1", "card-2", "card-3")
ACTIVE = (Chunk("chunk-a", "先看价格"), Chunk("chunk-b", "Stay calm.", version="3"))
LOST: dict[str, Any] = {
    "candidate_id": "online-1",
    "operation": "ADD",
    "target_chunk_id": None,
    "content": "### 标题\n\n- Applies when: 总是\n- Procedure:\n  1. 逐一核对\n"
    "- Verify: 有\n- Avoid: 无",
    "proposal_checkpoint": "round-001",
    "validation_result": "non_positive",
    "estimated_effect": -0.03,
}


def item(**changes: Any) -> dict[str, Any]:
    return {
        "operation": "ADD",
        "target_chunk_id": None,
        "title": "价格核对",
        "failure_mechanism": "没有核对价格",
        "applicable_when": "有预算时",
        "procedure": ["查看当前价格", "与预算比较"],
        "verification": "价格不超过预算",
        "common_failure": "直接购买",
        "evidence_card_ids": list(CARDS),
        **changes,
    }


def contract(history: Sequence[dict[str, Any]] = (), **changes: Any) -> Contract:
    made = Contract(
        max_candidates=2,
        active_ids=[chunk.skill_id for chunk in ACTIVE],
        facts=dict.fromkeys(CARDS, FACTS),
        firewall=Firewall(),
        history=History(history, ACTIVE),
        style=ProcedureStyle(),
    )
    return replace(made, **changes)


def errors_of(*items: dict[str, Any], rest: Sequence[str] = (), **changes: Any) -> list[str]:
    result = {"candidates": list(items), "evidence_only_card_ids": list(rest)}
    return contract(**changes).errors(result)


def test_a_sound_compilation_has_no_errors() -> None:
    assert errors_of(item()) == []
    assert errors_of(item(target_chunk_id="")) == [], "an empty target is none at all"
    assert errors_of(item(operation="REWRITE", target_chunk_id="chunk-a")) == []
    assert errors_of(rest=CARDS) == []


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"operation": "DELETE"}, "operation must be ADD or REWRITE, not 'DELETE'"),
        ({"target_chunk_id": "chunk-a"}, "an ADD has no target_chunk_id, not 'chunk-a'"),
        (
            {"operation": "REWRITE", "target_chunk_id": "chunk-z"},
            "target_chunk_id 'chunk-z' is not an active chunk",
        ),
        ({"operation": "REWRITE"}, "target_chunk_id None is not an active chunk"),
        ({"title": " "}, "title must be a non-empty text"),
        ({"verification": None}, "verification must be a non-empty text"),
        ({"procedure": []}, "procedure must be a non-empty list of non-empty texts"),
        ({"procedure": "one"}, "procedure must be a non-empty list of non-empty texts"),
        ({"procedure": ["a", " "]}, "procedure must be a non-empty list of non-empty texts"),
        ({"procedure": ["选白色"]}, "firewall: copies_gold_option"),
        ({"title": "task 7"}, "firewall: contains_task_id"),
    ],
)
def test_every_broken_rule_is_named(changes: dict[str, Any], error: str) -> None:
    assert errors_of(item(**changes)) == [f"candidates[0]: {error}"]


def test_cards_are_accounted_for_exactly_once() -> None:
    assert errors_of(item(evidence_card_ids=["card-1", "card-1"]), rest=["card-2"]) == [
        "card 'card-1' is used 2 times",
        "card 'card-3' is neither cited nor listed as evidence only",
    ]
    assert errors_of(item(), rest=["card-3"]) == ["card 'card-3' is used 2 times"]
    assert errors_of(item(), rest=["card-9"]) == ["unknown card id 'card-9'"]
    both = item(evidence_card_ids=["card-1"]), item(title="别的", evidence_card_ids=["card-1"])
    assert "card 'card-1' is used 2 times" in errors_of(*both, rest=CARDS[1:])


def test_too_many_and_repeated_candidates_are_refused() -> None:
    items = [item(evidence_card_ids=[card]) for card in CARDS]
    assert errors_of(*items) == [
        "3 candidates, at most 2 are allowed",
        "candidates[1] repeats candidates[0] (overlap 1.00)",
        "candidates[2] repeats candidates[0] (overlap 1.00)",
    ]


def test_two_candidates_that_say_nearly_the_same_are_refused_wherever_they_would_stand() -> None:
    first = item(evidence_card_ids=["card-1"])
    nearly = item(evidence_card_ids=["card-2"], verification="价格 不超过预算。")
    elsewhere = {**nearly, "operation": "REWRITE", "target_chunk_id": "chunk-b"}
    for second in (nearly, elsewhere):
        assert errors_of(first, second, rest=["card-3"]) == [
            "candidates[1] repeats candidates[0] (overlap 1.00)"
        ]
    other = item(
        evidence_card_ids=["card-2"],
        title="翻页",
        failure_mechanism="停在第一页",
        applicable_when="结果不合适",
        procedure=["翻到下一页"],
        verification="出现新的候选",
        common_failure="重复搜索",
    )
    assert errors_of(first, other, rest=["card-3"]) == []


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=9), lambda inner: st.lists(inner, max_size=3)
)


@settings(max_examples=60, deadline=None)
@given(VALUES)
def test_no_shape_of_a_result_is_an_exception(value: Any) -> None:
    for result in (
        {"candidates": value, "evidence_only_card_ids": value},
        {"candidates": [{"operation": value}], "evidence_only_card_ids": []},
        {"candidates": [item(procedure=value)], "evidence_only_card_ids": []},
        {"candidates": [item(evidence_card_ids=value)], "evidence_only_card_ids": []},
    ):
        assert all(isinstance(error, str) for error in contract().errors(result))


def test_what_was_tried_is_refused_with_its_outcome() -> None:
    same = item(
        title="标题",
        applicable_when="总是",
        procedure=["逐一核对"],
        verification="有",
        common_failure="无",
    )
    (error,) = errors_of(same, history=[LOST])
    assert error == (
        "candidates[0]: the same proposal as online-1: "
        "proposed at round-001, lost as non_positive with -0.030"
    )
    nearly = {**same, "verification": "有 。"}
    (error,) = errors_of(nearly, history=[LOST])
    assert error.startswith("candidates[0]: nearly the same as online-1 (overlap 1.00)")
    elsewhere = {**LOST, "operation": "REWRITE", "target_chunk_id": "chunk-a"}
    assert errors_of(same, history=[elsewhere]) == [], "another place is another proposal"


def test_a_hopeful_proposal_that_was_not_decided_may_be_made_once_more() -> None:
    undecided = {
        **LOST,
        "validation_result": "not_adopted",
        "estimated_effect": 0.02,
        "validation_history": [{}],
    }
    content = LOST["content"]

    def objections(row: dict[str, Any], retries: int) -> list[str]:
        return History([row], (), retries=retries).objections("ADD", None, content)

    assert objections(undecided, 1) == []
    assert "undecided as not_adopted with +0.020" in objections(undecided, 0)[0]
    assert objections({**undecided, "validation_history": [{}, {}]}, 1)
    assert objections({**undecided, "estimated_effect": -0.01}, 1)
    assert objections({**undecided, "validation_result": "non_positive"}, 1)


def test_an_empty_and_no_target_are_one_signature() -> None:
    assert signature("ADD", "", "x") == signature("ADD", None, "x")
    assert signature("ADD", None, "x") != signature("REWRITE", "c", "x")


def test_outcomes_are_told_in_words() -> None:
    assert outcome_of(LOST) == "proposed at round-001, lost as non_positive with -0.030"
    won = {**LOST, "validation_result": "selected", "estimated_effect": 0.041}
    assert outcome_of(won) == "proposed at round-001, won as selected with +0.041"
    assert outcome_of({**LOST, "validation_result": None}).endswith("not judged yet")


def test_similarity_ignores_width_case_and_spacing() -> None:
    assert similarity("Check the PRICE.", "check  the ｐｒｉｃｅ") == 1.0
    assert similarity("check the price", "open the details") < 0.4
    assert similarity("", "") == 1.0


def test_candidates_carry_support_version_and_the_hash_of_their_text() -> None:
    items = [
        item(evidence_card_ids=["card-1", "card-2"]),
        item(operation="REWRITE", target_chunk_id="chunk-b", evidence_card_ids=["card-3"]),
    ]
    made = assemble(
        items,
        style=ProcedureStyle(),
        active=ACTIVE,
        task_of={"card-1": 7, "card-2": 8, "card-3": 7},
        minimum_tasks=2,
        proposal_checkpoint="checkpoint-1",
        provenance="rule_based",
    )
    assert [c.candidate_id for c in made] == [
        candidate_id(c.operation, c.target_chunk_id, c.content) for c in made
    ]
    assert [c.metadata["low_support"] for c in made] == [False, True]
    assert [c.metadata["distinct_tasks"] for c in made] == [2, 1]
    assert [c.version for c in made] == ["1", "4"]
    assert len({c.metadata["content_sha256"] for c in made}) == 1


# --- the rule-based compiler

MECHANISMS = {m.name: m for m in mechanisms_of(("colour", "size"))}


def card(number: int, mechanism: str, task: int, target: str | None = None) -> dict[str, Any]:
    return {
        "card_id": f"card-{number:02d}",
        "status": "PROPOSE_REWRITE" if target else "PROPOSE_ADD",
        "task_id": task,
        "deployable_abstraction": {
            "failure_mechanism": MECHANISMS[mechanism].failure,
            "target_chunk_id": target,
        },
    }


def compiled(
    cards: Sequence[dict[str, Any]], history: Sequence[dict[str, Any]] = (), limit: int = 6
) -> Compiled:
    rules = Contract(
        max_candidates=limit,
        active_ids=["chunk-v"],
        facts=dict.fromkeys((each["card_id"] for each in cards), FACTS),
        firewall=Firewall(),
        history=History(history, [Chunk("chunk-v", "Respect what the user can afford.")]),
        style=SentenceStyle(frozenset(vocabulary())),
    )
    result = RuleBasedCompiler(MECHANISMS).compile(cards, rules)
    parts = {
        "candidates": list(result.items),
        "evidence_only_card_ids": list(result.evidence_only),
    }
    assert rules.errors(parts) == []
    return result


def test_cards_of_one_mechanism_become_one_candidate_most_tasks_first() -> None:
    cards = [
        card(1, "reveal_hidden", 5),
        card(2, "select_option:size", 6),
        card(3, "select_option:size", 7),
        card(4, "within_budget", 8, "chunk-v"),
        card(5, "reveal_hidden", 5),
    ]
    items = compiled(cards).items
    assert [each["evidence_card_ids"] for each in items] == [
        ["card-02", "card-03"],
        ["card-01", "card-05"],
        ["card-04"],
    ]
    assert [each["operation"] for each in items] == ["ADD", "ADD", "REWRITE"]
    assert items[0]["procedure"] == ["Select the wanted size before you buy."]


def test_a_sentence_that_lost_gives_way_to_the_next_and_the_last_to_none() -> None:
    cards = [card(1, "select_option:size", 5)]
    history: list[dict[str, Any]] = []
    said = []
    while items := compiled(cards, history).items:
        (sentence,) = items[0]["procedure"]
        said.append(sentence)
        history.append({**LOST, "content": sentence})
    assert said[0] == "Select the wanted size before you buy."
    assert len(said) >= 3 and len(set(said)) == len(said)
    last = compiled(cards, history)
    assert last.evidence_only == ["card-01"]
    assert any("lost as non_positive with -0.030" in note for note in last.notes)


def test_more_mechanisms_than_places_are_kept_as_evidence() -> None:
    cards = [card(n, name, n) for n, name in enumerate(("reveal_hidden", "turn_page"), 1)]
    result = compiled(cards, limit=1)
    assert len(result.items) == 1 and len(result.evidence_only) == 1
    assert any("no place left" in note for note in result.notes)
