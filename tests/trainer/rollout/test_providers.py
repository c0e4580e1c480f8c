"""Which chunks an evaluation shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer.errors import InputError
from trainer.files import write_json
from trainer.rollout.providers import AssignedSkills, BankSkills, NoSkills, load_assignment
from trainer.rollout.types import EpisodeJob
from trainer.skills.bank import parse_bank
from trainer.skills.types import Chunk

JOB = EpisodeJob(19, 0, 1, "val")
BANK = parse_bank(
    {
        "skills": [
            {"skill_id": "a", "content": "rule a"},
            {"skill_id": "b", "content": "rule b", "enabled": False},
            {"skill_id": "c", "content": "rule c", "task_ids": [19]},
            {"skill_id": "d", "content": "rule d", "task_ids": [20]},
            {"skill_id": "e", "content": "rule e", "metadata": {"x": 1}},
        ]
    }
)


def test_nothing_is_shown_without_skills() -> None:
    assert NoSkills().chunks_for(JOB) == ()
    assert NoSkills().identity() == {"provider": "none"}


def test_a_bank_shows_its_active_chunks_that_apply_in_file_order() -> None:
    chosen = BankSkills(BANK).chunks_for(JOB)
    assert [chunk.skill_id for chunk in chosen] == ["a", "c", "e"]
    scopes = [chunk.metadata["selection_scope"] for chunk in chosen]
    assert scopes == ["global", "task", "global"]
    assert chosen[2].metadata["x"] == 1


def test_at_most_max_skills_are_shown() -> None:
    provider = BankSkills(BANK, max_skills=2)
    assert [chunk.skill_id for chunk in provider.chunks_for(JOB)] == ["a", "c"]
    assert provider.identity() == {
        "provider": "json_skillbank",
        "schema_version": "shopsimrl-skillbank-v1",
        "bank_version": "1",
        "bank_sha256": BANK.bank_sha256,
        "max_skills": 2,
    }


def test_assigned_chunks_come_in_the_assigned_order() -> None:
    provider = AssignedSkills(BANK.chunks, {("val", 19, 0): ("e", "a")}, identity={"bank": "x"})
    assert [chunk.skill_id for chunk in provider.chunks_for(JOB)] == ["e", "a"]
    assert provider.identity() == {"provider": "assigned_json_skillbank", "bank": "x"}


@pytest.mark.parametrize(
    ("ids", "message"), [(("b",), "unknown chunks"), (("a", "a"), "a chunk twice")]
)
def test_a_wrong_assignment_is_refused_before_anything_is_played(
    ids: tuple[str, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        AssignedSkills(BANK.chunks, {("val", 19, 0): ids}, identity={})


def test_a_job_without_an_assignment_is_an_error() -> None:
    provider = AssignedSkills([Chunk("a", "x")], {("val", 19, 0): ()}, identity={})
    assert provider.chunks_for(JOB) == ()
    with pytest.raises(InputError, match="no chunks are assigned"):
        provider.chunks_for(EpisodeJob(19, 1, 1, "val"))


def test_an_assignment_file_is_read_with_its_hash_as_identity(tmp_path: Path) -> None:
    path = tmp_path / "mask_assignments.json"
    row = {"split": "val", "task_id": 19, "sample_id": 0, "included_chunk_ids": ["c", "a"]}
    write_json(path, {"assignments": [row]})
    provider = load_assignment(path, BANK)
    assert [chunk.skill_id for chunk in provider.chunks_for(JOB)] == ["c", "a"]
    first = provider.identity()
    write_json(path, {"assignments": [{**row, "included_chunk_ids": ["a"]}]})
    assert load_assignment(path, BANK).identity() != first
