"""Proposals to delete, merge and split chunks become factors that a gate can judge."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.analyst.conftest import Configure
from tests.trainer.analyst.fake_endpoint import SENTENCE, FakeEndpoint, call, investigator, says
from tests.trainer.analyst.test_compiler import CARDS, contract, item
from tests.trainer.analyst.test_endpoint import endpoint
from trainer.analyst.compiler.restructure import Restructuring, expand
from trainer.analyst.run import run_analysis
from trainer.files import read_json
from trainer.gate.pool import load_pool
from trainer.gate.slots import build_layout

PART = {
    "title": "翻页",
    "applicable_when": "结果不合适",
    "procedure": ["翻到下一页"],
    "verification": "出现新的候选",
    "common_failure": "重复搜索",
}
OTHER = {
    "title": "选项",
    "applicable_when": "商品有规格",
    "procedure": ["选择想要的规格"],
    "verification": "规格已选中",
    "common_failure": "漏选",
}
DELETE = {
    "operation": "DELETE",
    "target_chunk_id": "chunk-a",
    "failure_mechanism": "这条规则使人匆忙购买",
    "evidence_card_ids": list(CARDS),
}
MERGE = item(operation="MERGE", target_chunk_id="chunk-a", other_chunk_ids=["chunk-b"])
SPLIT = {**DELETE, "operation": "SPLIT", "parts": [PART, OTHER]}


def errors_of(*items: dict[str, Any], **changes: Any) -> list[str]:
    result = {"candidates": list(items), "evidence_only_card_ids": []}
    return contract(**{"restructure": True, **changes}).errors(result)


@pytest.mark.parametrize("proposal", [DELETE, MERGE, SPLIT])
def test_sound_proposals_pass_where_they_are_allowed_and_nowhere_else(
    proposal: dict[str, Any],
) -> None:
    assert errors_of(proposal) == []
    (error, *_) = errors_of(proposal, restructure=False)
    assert error == (
        f"candidates[0]: operation must be ADD or REWRITE, not {proposal['operation']!r}"
    )


@pytest.mark.parametrize(
    ("proposal", "error"),
    [
        ({**DELETE, "target_chunk_id": "chunk-z"}, "target_chunk_id 'chunk-z' is not an active"),
        ({**DELETE, "failure_mechanism": " "}, "failure_mechanism must be a non-empty text"),
        ({**DELETE, "failure_mechanism": "总是选白色"}, "firewall: copies_gold_option"),
        ({**MERGE, "other_chunk_ids": []}, "a MERGE needs other_chunk_ids"),
        ({**MERGE, "other_chunk_ids": ["chunk-a"]}, "'chunk-a' is not another active chunk"),
        ({**MERGE, "other_chunk_ids": [["chunk-b"]]}, "['chunk-b'] is not another active chunk"),
        ({**MERGE, "other_chunk_ids": ["chunk-b", "chunk-b"]}, "other_chunk_ids repeats a chunk"),
        ({**MERGE, "title": ""}, "title must be a non-empty text"),
        ({**SPLIT, "parts": [PART]}, "a SPLIT needs at least two parts"),
        ({**SPLIT, "parts": [PART, "x"]}, "parts must be objects"),
        ({**SPLIT, "parts": [PART, {**OTHER, "procedure": []}]}, "parts[1]: procedure must be"),
        ({**SPLIT, "parts": [PART, {**OTHER, "procedure": ["选白色"]}]}, "firewall: copies_gold"),
        ({**SPLIT, "parts": [PART, PART]}, "candidates[0] repeats candidates[0]"),
        ({**DELETE, "operation": "RENAME"}, "DELETE, MERGE or SPLIT, not 'RENAME'"),
    ],
)
def test_every_broken_rule_is_named(proposal: dict[str, Any], error: str) -> None:
    assert any(error in found for found in errors_of(proposal)), errors_of(proposal)


def test_a_restructured_chunk_is_the_subject_of_nothing_else() -> None:
    rewrite = item(operation="REWRITE", target_chunk_id="chunk-b", evidence_card_ids=["card-3"])
    merge = {**MERGE, **PART, "evidence_card_ids": ["card-1", "card-2"]}
    assert errors_of(merge, rewrite) == [
        "chunk 'chunk-b' is the subject of 2 proposals, of which one restructures it"
    ]


def test_the_parts_of_a_split_count_as_slots_and_a_deletion_as_none() -> None:
    assert errors_of(SPLIT, max_candidates=1)[0] == "2 candidates, at most 1 are allowed"
    assert expand(DELETE) == []
    assert [each["operation"] for each in expand(SPLIT)] == ["REWRITE", "ADD"]
    assert [each["target_chunk_id"] for each in expand(SPLIT)] == ["chunk-a", None]


@pytest.mark.parametrize(
    ("operation", "chunks", "candidates", "retired"),
    [
        ("DELETE", ("a",), (), ("a",)),
        ("MERGE", ("a", "b"), ("c",), ("b",)),
        ("SPLIT", ("a",), ("c", "d"), ()),
    ],
)
def test_a_proposal_is_decided_by_its_texts_and_by_the_chunks_that_it_ends(
    operation: str, chunks: tuple[str, ...], candidates: tuple[str, ...], retired: tuple[str, ...]
) -> None:
    proposal = Restructuring(operation, chunks, candidates, "why", ("card",))
    assert proposal.retired == retired
    assert proposal.factors == (*candidates, *retired)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEndpoint]:
    monkeypatch.setenv("ANALYST_TEST_KEY", "k")
    with FakeEndpoint().running() as running:
        yield running


def test_an_endpoint_may_restructure_a_bank_and_every_proposal_has_its_columns(
    server: FakeEndpoint, round_folder: Path, configure: Configure
) -> None:
    active = [c.skill_id for c in load_bank_of(round_folder)]
    texts = {"applicable_when": "the user has a budget", "verification": "the price is seen"}

    def reorganiser(request: dict[str, Any]) -> dict[str, Any]:
        names = {tool["function"]["name"] for tool in request["tools"]}
        if "submit_candidates" not in names:
            return investigator(request)
        kinds = request["tools"][0]["function"]["parameters"]["properties"]["candidates"]["items"]
        assert "SPLIT" in kinds["properties"]["operation"]["enum"]
        assert "DELETE" in request["messages"][0]["content"]
        payload = json.loads(request["messages"][1]["content"])
        cards = [each["card_id"] for each in payload["failure_cards"]]
        common = {**texts, "title": "Price and budget", "common_failure": "buying at once"}
        parts = [
            {**common, "procedure": [SENTENCE]},
            {**common, "procedure": ["Open the details of the product."]},
        ]
        proposals = [
            {"operation": "DELETE", "target_chunk_id": active[0], "evidence_card_ids": cards[:1]},
            {
                "operation": "SPLIT",
                "target_chunk_id": active[1],
                "parts": parts,
                "evidence_card_ids": cards[1:],
            },
        ]
        proposals = [{"failure_mechanism": "the rule asks for haste", **each} for each in proposals]
        arguments = {"candidates": proposals, "evidence_only_card_ids": []}
        return says(call("submit_candidates", arguments))

    server.model = reorganiser
    summary = run_analysis(configure(round_folder, {**endpoint(server), "restructure": True}))
    assert summary["status"] == "complete", summary["error"]
    pool = load_pool(round_folder / "analysis" / "candidate_pool.json")
    assert [c.operation for c in pool.candidates] == ["REWRITE", "ADD"]
    delete, split = read_json(round_folder / "analysis" / "analysis_summary.json")["restructurings"]
    assert delete["factors"] == [active[0]]
    assert split["candidate_ids"] == split["factors"] == [c.candidate_id for c in pool.candidates]
    assert {*delete["factors"], *split["factors"]} <= set(build_layout(pool).columns)


def load_bank_of(round_folder: Path) -> Any:
    from trainer.skills.bank import load_bank

    return load_bank(round_folder / "bank.json").chunks
