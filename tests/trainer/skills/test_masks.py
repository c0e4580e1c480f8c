from __future__ import annotations

from pathlib import Path

from tests.trainer.skills.test_curriculum import golden
from trainer.skills.curriculum import load_curriculum
from trainer.skills.masks import draw, full_skill, treatment, visible_chunks


def test_the_synthetic_golden_vectors() -> None:
    curriculum = golden()
    assert draw(curriculum, 0, "skill-free") == 0.5638465415975656
    assert draw(curriculum, "0", "chunk:a") == 0.09891143357100819
    seen = ["".join(treatment(curriculum, group).skill_ids) for group in range(10)]
    assert seen == ["ab", "a", "ab", "ab", "a", "a", "a", "", "a", "ab"]
    assert treatment(curriculum, 7).mode == "skill_free"


def test_the_published_golden_vectors(published: Path) -> None:
    curriculum = load_curriculum(published / "artifacts" / "cold-start" / "curriculum.json")
    assert draw(curriculum, 0, "skill-free") == 0.06180064780548179
    expected = {
        0: "skill_free",
        1: "bbe6 d3a9 f58e c83e",
        2: "27a7 4d95 f58e 1f8d",
        3: "f58e 1f8d",
        4: "skill_free",
        5: "skill_free",
        6: "skill_free",
        7: "a71a d3a9 f58e c83e 1f8d",
        8: "27a7 d3a9 f58e 1f8d",
        9: "27a7 a9e9 d3a9 f58e 1f8d",
        10: "4d95 b64b f58e 1f8d",
        11: "d3a9 f58e 1f8d",
    }
    for group, text in expected.items():
        given = treatment(curriculum, group)
        short = " ".join(skill_id.removeprefix("chunk-")[:4] for skill_id in given.skill_ids)
        assert (short or given.mode) == text, group
    free = sum(treatment(curriculum, group).mode == "skill_free" for group in range(2560))
    assert free == 531


def test_q_decides_the_extremes() -> None:
    never, always = golden(skill_free_probability=0.0), golden(skill_free_probability=1.0)
    assert all(treatment(never, group).mode != "skill_free" for group in range(200))
    assert all(treatment(always, group).mode == "skill_free" for group in range(200))


def test_a_group_may_see_nothing_without_being_skill_free() -> None:
    curriculum = golden(skill_free_probability=0.0, rho_min=0.0, rho_max=0.1)
    assert {treatment(curriculum, group).mode for group in range(200)} == {
        "assisted",
        "assisted_empty",
    }


def test_inclusion_follows_rho() -> None:
    curriculum = golden(skill_free_probability=0.25)
    seen = sum("b" in treatment(curriculum, group).skill_ids for group in range(20_000)) / 20_000
    assert abs(seen - 0.75 * 0.5) < 0.012


def test_a_retry_sees_everything_and_records_name_the_state() -> None:
    curriculum = golden()
    assert full_skill(curriculum).skill_ids == ("a", "b")
    given = treatment(curriculum, 1)
    assert [chunk.content for chunk in visible_chunks(curriculum, given)] == ["rule a"]
    assert given.to_record(curriculum, 1) == {
        "state_id": curriculum.state_id,
        "group_key": "1",
        "mode": "assisted",
        "skill_ids": ["a"],
    }
