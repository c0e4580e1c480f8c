"""The published rounds 0–2, rebuilt from their contents: ids, hashes and ledgers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainer.analyst.compiler.assemble import cluster_id
from trainer.analyst.compiler.history import History
from trainer.analyst.compiler.style import ProcedureStyle
from trainer.analyst.firewall.published import published_findings
from trainer.canonical import fingerprint
from trainer.files import read_json, read_jsonl
from trainer.gate.ledger import append_proposals, load_ledger, proposal_row
from trainer.gate.pool import candidate_id, load_pool, pool_document, pool_hash
from trainer.skills.bank import load_bank

ROUNDS = (0, 1, 2)


def analysis(published: Path, number: int) -> Path:
    return published / "artifacts" / f"round-{number:03d}" / "analysis"


def gate(published: Path, number: int) -> Path:
    return published / "artifacts" / f"round-{number:03d}" / "gate"


@pytest.mark.parametrize("number", ROUNDS)
def test_candidate_and_cluster_ids_follow_from_the_contents(published: Path, number: int) -> None:
    pool = load_pool(analysis(published, number) / "candidate_pool.json")
    assert len(pool.candidates) == 6
    for candidate in pool.candidates:
        name = candidate_id(candidate.operation, candidate.target_chunk_id, candidate.content)
        assert name == candidate.candidate_id
        assert cluster_id(name) == candidate.metadata["consolidation_cluster_id"]


@pytest.mark.parametrize("number", ROUNDS)
def test_pool_hashes_follow_from_the_contents(published: Path, number: int) -> None:
    document = read_json(analysis(published, number) / "candidate_pool.json")
    assert pool_hash(document) == document["pool_sha256"]
    manifest = read_json(gate(published, number) / "online_gate_manifest.json")
    assert manifest["input"]["pool_sha256"] == document["pool_sha256"]


@pytest.mark.parametrize("number", ROUNDS)
def test_a_pool_built_from_bank_and_candidates_is_the_published_one(
    published: Path, number: int
) -> None:
    frozen = load_pool(analysis(published, number) / "candidate_pool.json")
    before = gate(published, number - 1) if number else published / "artifacts" / "cold-start"
    built = pool_document(
        round_id=frozen.round_id,
        proposal_checkpoint=frozen.proposal_checkpoint,
        bank=load_bank(before / "selected_skillbank.json"),
        candidates=frozen.candidates,
    )
    assert built["pool_sha256"] == frozen.pool_sha256


@pytest.mark.parametrize("number", ROUNDS)
def test_the_ledger_of_the_analysis_is_the_history_and_the_new_rows(
    published: Path, number: int
) -> None:
    pool = load_pool(analysis(published, number) / "candidate_pool.json")
    history = load_ledger(gate(published, number - 1) / "proposal_ledger.jsonl") if number else []
    rows = append_proposals(history, pool)
    path = analysis(published, number) / "proposal_ledger.jsonl"
    assert rows == list(read_jsonl(path))
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    assert text == path.read_text(encoding="utf-8"), "default separators, key by key"


@pytest.mark.parametrize("number", ROUNDS)
def test_the_ledger_of_the_gate_has_the_published_hash(published: Path, number: int) -> None:
    rows = list(read_jsonl(gate(published, number) / "proposal_ledger.jsonl"))
    manifest = read_json(gate(published, number) / "online_gate_manifest.json")
    assert fingerprint(rows) == manifest["output"]["proposal_ledger_sha256"]
    assert len(rows) == 6 * (number + 1)


@pytest.mark.parametrize("number", ROUNDS)
def test_new_rows_have_the_published_keys(published: Path, number: int) -> None:
    pool = load_pool(analysis(published, number) / "candidate_pool.json")
    fresh = list(read_jsonl(analysis(published, number) / "proposal_ledger.jsonl"))[-6:]
    for candidate, row in zip(pool.candidates, fresh, strict=True):
        mine = proposal_row(candidate, pool.proposal_checkpoint)
        assert list(mine) == list(row)
        assert mine == row


@pytest.mark.parametrize("number", ROUNDS)
def test_the_published_layout_of_a_chunk_is_rendered_to_the_letter(
    published: Path, number: int
) -> None:
    for candidate in load_pool(analysis(published, number) / "candidate_pool.json").candidates:
        item = parts_of(candidate.content)
        assert item["title"] == candidate.metadata["title"]
        assert ProcedureStyle().render(item) == candidate.content


@pytest.mark.parametrize("number", ROUNDS)
def test_the_published_candidates_pass_the_published_firewall(published: Path, number: int) -> None:
    for candidate in load_pool(analysis(published, number) / "candidate_pool.json").candidates:
        assert published_findings(candidate.content, None) == []


def test_what_was_tried_before_is_objected_to_with_its_outcome(published: Path) -> None:
    rows = load_ledger(gate(published, 1) / "proposal_ledger.jsonl")
    lost = next(row for row in rows if row["validation_result"] == "non_positive")
    history = History(rows, ())
    same = history.objections(lost["operation"], lost["target_chunk_id"], lost["content"])
    assert any(lost["candidate_id"] in text and "lost as non_positive" in text for text in same)
    nearly = lost["content"].replace("验证", "确认").replace("- Avoid", "- Avoid ")
    near = history.objections(lost["operation"], lost["target_chunk_id"], nearly)
    assert any("nearly the same as" in text for text in near)


def parts_of(content: str) -> dict[str, Any]:
    """The parts of a rendered chunk."""
    lines = content.split("\n")
    steps = [line for line in lines if line.startswith("  ")]

    def after(label: str) -> str:
        return next(line.removeprefix(label) for line in lines if line.startswith(label))

    return {
        "title": lines[0].removeprefix("### "),
        "applicable_when": after("- Applies when: "),
        "procedure": [step.split(". ", 1)[1] for step in steps],
        "verification": after("- Verify: "),
        "common_failure": after("- Avoid: "),
    }
