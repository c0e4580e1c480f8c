"""What changed between two skill versions, chunk by chunk and word by word."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from intraskill_web.skills.diff import Piece, Text, compare, counts, word_count, words


def text(skill_id: str, content: str = "same") -> Text:
    return Text(skill_id, content, content, skill_id.title())


def changes(old: str, new: str) -> dict[str, str]:
    made = compare([text(c) for c in old], [text(c) for c in new])
    return {change.skill_id: change.change for change in made}


def test_added_retired_and_unchanged() -> None:
    assert changes("abc", "acd") == {
        "a": "unchanged", "c": "unchanged", "d": "added", "b": "retired",
    }  # fmt: skip


def test_a_chunk_that_changed_its_place_is_moved_not_rewritten() -> None:
    found = changes("abcd", "bcda")
    assert found == {"b": "unchanged", "c": "unchanged", "d": "unchanged", "a": "moved"}


def test_a_retirement_moves_nobody() -> None:
    assert set(changes("abcd", "acd").values()) == {"unchanged", "retired"}


def test_a_rewrite_keeps_the_logical_chunk_and_marks_words() -> None:
    (change,) = compare([text("a", "open the details")], [text("a", "open every page")])
    assert change.change == "rewritten"
    assert (change.old_place, change.new_place) == (1, 1)
    assert change.pieces == [
        Piece("=", "open "),
        Piece("-", "the"),
        Piece("+", "every"),
        Piece("=", " "),
        Piece("-", "details"),
        Piece("+", "page"),
    ]


def test_chinese_is_compared_by_character() -> None:
    assert words("选择最便宜的商品", "选择最合适的商品") == [
        Piece("=", "选择最"),
        Piece("-", "便宜"),
        Piece("+", "合适"),
        Piece("=", "的商品"),
    ]


def test_counts_cover_every_kind_of_change() -> None:
    made = compare([text("a"), text("b")], [text("b", "new"), text("c")])
    assert counts(made) == {"added": 1, "retired": 1, "rewritten": 1, "moved": 0, "unchanged": 0}


def test_words_are_counted_without_marks_and_spaces() -> None:
    assert word_count("Open the page, then 选购.") == 6


@given(st.text(max_size=60), st.text(max_size=60))
def test_the_pieces_give_back_both_texts(old: str, new: str) -> None:
    pieces = words(old, new)
    assert "".join(p.text for p in pieces if p.op in "=-") == old
    assert "".join(p.text for p in pieces if p.op in "=+") == new


ids = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)


@given(ids, ids)
def test_every_chunk_of_either_version_appears_once(old: list[str], new: list[str]) -> None:
    made = compare([text(c) for c in old], [text(c) for c in new])
    assert sorted(change.skill_id for change in made) == sorted(set(old) | set(new))
    assert [c.skill_id for c in made if c.new_place] == new


def test_a_rewrite_does_not_fall_into_crumbs() -> None:
    pieces = words("任务显性约束和用户画像", "任务识别所有约束需求相关规格")
    assert "".join(p.text for p in pieces if p.op != "+") == "任务显性约束和用户画像"
    assert "".join(p.text for p in pieces if p.op != "-") == "任务识别所有约束需求相关规格"
    old, new = "购买前验证偏好", "识别与前相关的规格"
    assert [p.op for p in words(old, new)] == ["-", "+"]


def test_a_single_changed_character_stays_a_single_one() -> None:
    assert [p.text for p in words("甲乙丙丁", "甲戊丙己")] == ["甲", "乙", "戊", "丙", "丁", "己"]
