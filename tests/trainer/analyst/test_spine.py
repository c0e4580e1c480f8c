"""The analyst's spine: what waits, what is written, what is never lost."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.trainer.analyst.conftest import Configure
from tests.trainer.grpo.test_training_round import curriculum, training_run
from trainer.analyst.run import run_analysis
from trainer.analyst.settings import TriggerSettings
from trainer.analyst.triage_queue import group_lines, waiting_cases
from trainer.errors import InputError
from trainer.files import read_json, read_jsonl, write_jsonl
from trainer.gate.pool import load_pool
from trainer.shop.world import World
from trainer.skills.bank import SkillBank, write_bank
from trainer.skills.types import Chunk


def bank(*chunks: Chunk) -> SkillBank:
    return SkillBank(chunks or curriculum().chunks, "0" * 64)


def test_every_failed_group_waits_with_its_retry(round_folder: Path) -> None:
    pending = waiting_cases(round_folder / "train", bank(), TriggerSettings())
    assert [item.line["group_index"] for item in pending] == list(range(6))
    for item in pending:
        assert item.trace["episode_id"] == (
            f"train-group-{item.line['group_index']:09d}"
            f"-sample-{4 * (item.line['group_index'] + 1):09d}-full-skill-retry"
        )
        shown = [chunk["skill_id"] for chunk in item.trace["selected_skills"]]
        assert shown == ["brand", "calm"]


def test_groups_that_do_not_wait_are_left_out(mini: World, tmp_path: Path) -> None:
    training_run(mini, tmp_path / "train").run()
    waiting = {
        item.line["group_index"]
        for item in waiting_cases(tmp_path / "train", bank(), TriggerSettings())
    }
    for line in group_lines(tmp_path / "train"):
        label = line["classification"] == "full_skill_failure_pending_analysis"
        assert (line["group_index"] in waiting) is label
    assert waiting and len(waiting) < 12


def test_a_retry_that_showed_another_bank_is_refused(round_folder: Path) -> None:
    changed = replace(curriculum().chunks[0], content="another text")
    with pytest.raises(InputError, match="other chunks than the bank"):
        waiting_cases(
            round_folder / "train", bank(changed, curriculum().chunks[1]), TriggerSettings()
        )


def test_without_an_analyst_the_pool_holds_the_active_chunks(
    round_folder: Path, configure: Configure
) -> None:
    summary = run_analysis(configure(round_folder))
    assert (summary["triage_groups"], summary["analyzed_cards"], summary["candidates"]) == (6, 0, 0)
    pool = load_pool(round_folder / "analysis" / "candidate_pool.json")
    assert [chunk.skill_id for chunk in pool.current] == ["brand", "calm"]
    assert pool.candidates == ()
    assert pool.pool_sha256 == summary["pool_sha256"]
    assert read_json(round_folder / "analysis" / "analysis_summary.json") == summary
    assert (round_folder / "analysis" / "proposal_ledger.jsonl").read_text() == ""


def test_the_ledger_of_earlier_rounds_is_carried_on(
    round_folder: Path, configure: Configure
) -> None:
    history = [
        {"candidate_id": "online-1", "validation_result": "retired"},
        {"candidate_id": "online-2", "validation_result": None},
        {"candidate_id": "online-1", "validation_result": "selected"},
    ]
    write_jsonl(round_folder / "history.jsonl", history)
    summary = run_analysis(configure(round_folder, ledger_history=round_folder / "history.jsonl"))
    rows = list(read_jsonl(round_folder / "analysis" / "proposal_ledger.jsonl"))
    assert rows == [history[2], history[1]], "the last record of an id wins, in first-seen order"
    assert summary["proposal_history_records"] == 2


def test_a_ledger_that_is_named_and_missing_is_an_error(
    round_folder: Path, configure: Configure
) -> None:
    with pytest.raises(InputError, match="ledger of the earlier rounds is missing"):
        run_analysis(configure(round_folder, ledger_history=round_folder / "lost.jsonl"))
    assert not (round_folder / "analysis" / "candidate_pool.json").exists()


def test_an_analysis_without_a_round_is_an_error(tmp_path: Path, configure: Configure) -> None:
    write_bank(tmp_path / "bank.json", curriculum().chunks, bank_version="t", metadata={})
    with pytest.raises(InputError, match="no groups of a training round"):
        run_analysis(configure(tmp_path))


def test_repeating_an_analysis_gives_the_same_hashes(
    round_folder: Path, configure: Configure
) -> None:
    one, two = run_analysis(configure(round_folder)), run_analysis(configure(round_folder))
    for summary in (one, two):
        summary.pop("created_at")
    assert one == two


def test_rules_make_a_card_of_every_group_and_the_same_documents_each_time(
    round_folder: Path, configure: Configure
) -> None:
    first = run_analysis(configure(round_folder, "rule_based"))
    assert (first["status"], first["analyzed_cards"], first["analyst_errors"]) == ("complete", 6, 0)
    cards = list(read_jsonl(round_folder / "analysis" / "failure_cards.jsonl"))
    assert {card["provenance"] for card in cards} == {"rule_based"}
    assert {card["schema_version"] for card in cards} == {"shopsimrl-evidence-card-v3"}
    shutil.rmtree(round_folder / "analysis")
    again = run_analysis(configure(round_folder, "rule_based"))
    for summary in (first, again):
        summary.pop("created_at")
    assert first == again
    pool = load_pool(round_folder / "analysis" / "candidate_pool.json")
    assert len(pool.candidates) == first["candidates"]
    ledger = list(read_jsonl(round_folder / "analysis" / "proposal_ledger.jsonl"))
    assert [row["candidate_id"] for row in ledger] == [c.candidate_id for c in pool.candidates]


def test_a_changed_bank_makes_the_cards_anew(round_folder: Path, configure: Configure) -> None:
    run_analysis(configure(round_folder, "rule_based"))
    path = round_folder / "analysis" / "failure_cards.jsonl"
    assert len(list(read_jsonl(path))) == 6
    write_bank(round_folder / "bank.json", curriculum().chunks, bank_version="u", metadata={})
    run_analysis(configure(round_folder, "rule_based"))
    assert len(list(read_jsonl(path))) == 12, "cards are appended, never overwritten"
    run_analysis(configure(round_folder, "rule_based"))
    assert len(list(read_jsonl(path))) == 12
