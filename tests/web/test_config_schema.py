"""From a model's schema to a form's fields and back to a document, without Django."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intraskill_web.configs.kinds import MODELS, Problem, check, groups_of, read_text, with_lines
from intraskill_web.configs.schema import assemble, changes, fill
from trainer.errors import InputError

LAUNCH = {
    "gate": 1,
    "analyst": 1,
    "curriculum": 1,
    "start": {"skillbank": "a.json", "checkpoint": "b"},
}


def default_of(kind: str) -> dict[str, object]:
    document, problems = check(kind, LAUNCH if kind == "launch" else {})
    assert problems == []
    return document


@pytest.mark.parametrize("kind", MODELS)
def test_a_document_survives_its_form(kind: str) -> None:
    found, document = groups_of(kind), default_of(kind)
    again, problems = check(kind, assemble(found, fill(found, document)))
    assert problems == []
    assert again == document


def test_every_value_of_a_kind_has_one_field() -> None:
    found = groups_of("gate")
    paths = [leaf.path for group in found for leaf in group.leaves]
    assert len(paths) == len(set(paths))
    assert {"profile", "tasks", "standard.adopt_alpha", "standard.shared_noise"} <= set(paths)


def test_limits_and_choices_come_from_the_types() -> None:
    leaves = {leaf.path: leaf for group in groups_of("gate") for leaf in group.leaves}
    assert leaves["standard.adopt_alpha"].range == "0 < x ≤ 0.5"
    assert leaves["standard.keep_confidence"].range == "0.5 ≤ x < 1"
    assert leaves["profile"].choices == ("published", "standard")
    assert leaves["tasks"].nullable
    assert leaves["standard.shared_noise"].kind == "boolean"


def test_an_object_that_may_be_null_has_a_switch() -> None:
    found = groups_of("analyst")
    texts = fill(found, default_of("analyst"))
    assert texts["endpoint"] is False
    assert assemble(found, texts)["endpoint"] is None
    texts |= {"kind": "endpoint", "endpoint": True, "endpoint.base_url": "http://a/v1"}
    document, problems = check("analyst", assemble(found, texts))
    assert [p.path for p in problems] == []
    assert document["endpoint"]["base_url"] == "http://a/v1"
    assert document["endpoint"]["prices"]["input"] == 0.0


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("active_skill_budget", "0", "must be ≥ 1"),
        ("active_skill_budget", "many", "must be a whole number"),
        ("active_skill_budget", "", "must be a whole number"),
        ("standard.adopt_alpha", "0", "must be > 0"),
        ("standard.adopt_alpha", "nan", "must be"),
        ("profile", "kind", "must be 'published' or 'standard'"),
    ],
)
def test_a_bad_value_is_named_at_its_field(path: str, text: str, said: str) -> None:
    found = groups_of("gate")
    texts = fill(found, default_of("gate")) | {path: text}
    _document, problems = check("gate", assemble(found, texts))
    assert [p.path for p in problems] == [path]
    assert problems[0].message.startswith(said)


def test_a_rule_across_fields_is_named_at_their_object() -> None:
    found = groups_of("gate")
    texts = fill(found, default_of("gate")) | {"standard.adopt_alpha": "0.4"}
    _document, problems = check("gate", assemble(found, texts))
    assert [p.path for p in problems] == ["standard"]
    assert "adopt_familywise must be at least adopt_alpha" in problems[0].message


def test_an_error_points_to_the_line_of_the_yaml() -> None:
    text = "profile: standard\nstandard:\n  looks: 1\n  adopt_alpha: 0.9\nfoo: 1\n"
    _document, problems = check("gate", read_text(text))
    lines = {p.path: p.line for p in with_lines(text, problems)}
    assert lines == {"standard.adopt_alpha": 4, "foo": 5}
    assert with_lines(text, [Problem("standard.bootstrap", "is missing")])[0].line == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [("a: [", "line"), ("- 1", "mapping"), ("a: \0", "line 1|special"), ("a: 1\nb: 'x", "line 2")],
)
def test_text_that_is_no_configuration_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_text(text)


def test_a_difference_names_every_value_that_changed() -> None:
    old = {"a": 1, "b": {"c": 2, "d": 3}}
    new = {"a": 1, "b": {"c": 5}, "e": None}
    assert changes(old, new) == [("b.c", 2, 5), ("b.d", 3, None)]


@given(st.dictionaries(st.text(max_size=12), st.text(max_size=12), max_size=8))
def test_no_text_breaks_the_form(texts: dict[str, str]) -> None:
    for kind in MODELS:
        check(kind, assemble(groups_of(kind), texts))
