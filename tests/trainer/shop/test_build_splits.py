"""Building the persona splits (environment.md §1.8)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.errors import InputError
from trainer.shop.data.build_splits import (
    Group,
    PersonaTask,
    SplitPolicy,
    build_splits,
    choose,
    linked_groups,
    normalise,
    persona_tasks,
    user_id,
)
from trainer.shop.data.cleaning import Cleaner
from trainer.shop.splits import load_splits
from trainer.shop.synthetic import SyntheticSettings, generate_records

POLICY = SplitPolicy(validation_size=30, test_size=30, held_out_max_group_size=5)


def tasks() -> list[PersonaTask]:
    records = generate_records(SyntheticSettings(products=600, seed=21))
    return list(persona_tasks(Cleaner().clean(records)))


def test_normalisation_is_nfkc_casefold_and_single_blanks() -> None:
    assert normalise(" ＡＢ\t c\n") == "ab c"


@pytest.mark.parametrize("key", ["用户ID", "用户 id", "user_id", "UserID", "用户_ID"])
def test_the_user_is_found_under_any_known_key(key: str) -> None:
    assert user_id({"x": 1, key: " U7, "}) == "u7,"


def test_tasks_that_share_any_key_are_one_group() -> None:
    def task(task_id: int, **keys: str) -> PersonaTask:
        return PersonaTask(task_id, "persona_train", keys)

    groups = linked_groups(
        [task(1, a="x"), task(2, b="y"), task(3, a="x", b="y"), task(4, a=""), task(5, a="")]
    )
    assert sorted(group.task_ids for group in groups) == [(1, 2, 3), (4,), (5,)]


def test_a_group_is_named_by_its_ids() -> None:
    assert Group((3, 5)).id == "group-" + hashlib.sha256(b"3,5").hexdigest()[:16]


def test_the_document_has_exact_sizes_whole_groups_and_full_coverage() -> None:
    listed = tasks()
    document = build_splits(listed, POLICY, source={})
    splits = document["splits"]
    assert (splits["test"]["task_count"], splits["val"]["task_count"]) == (30, 30)
    assert splits["train"]["task_count"] == len(listed) - 60
    assert all(document["checks"][name] for name in document["checks"])
    where = {i: name for name, split in splits.items() for i in split["task_ids"]}
    for group in linked_groups(listed):
        assert len({where[task_id] for task_id in group.task_ids}) == 1
    assert splits["test"]["max_group_size"] <= 5
    assert document["grouping"]["multi_task_group_count"] > 0
    counts = splits["train"]["source_split_counts"]
    assert set(counts) == {"persona_eval", "persona_train"}
    assert sum(counts.values()) == splits["train"]["task_count"]


def test_the_same_input_gives_the_same_splits_and_a_seed_gives_others() -> None:
    listed = tasks()
    first = build_splits(listed, POLICY, source={})
    assert build_splits(reversed(listed), POLICY, source={})["splits"] == first["splits"]
    other = SplitPolicy(seed=1, validation_size=30, test_size=30, held_out_max_group_size=5)
    assert build_splits(listed, other, source={})["splits"] != first["splits"]


def test_the_run_time_loader_accepts_the_document(tmp_path: Path) -> None:
    path = tmp_path / "splits.json"
    path.write_text(json.dumps(build_splits(tasks(), POLICY, source={})))
    assert len(load_splits(path).split("val").task_ids) == 30


def test_excluded_tasks_stay_out_of_the_test_split() -> None:
    listed = tasks()
    blocked = tuple(build_splits(listed, POLICY, source={})["splits"]["test"]["task_ids"][:5])
    policy = SplitPolicy(
        validation_size=30,
        test_size=30,
        held_out_max_group_size=5,
        test_excluded_task_ids=blocked,
    )
    document = build_splits(listed, policy, source={})
    assert document["checks"]["test_exclusions_respected"] is True
    assert set(blocked).isdisjoint(document["splits"]["test"]["task_ids"])


def test_a_size_that_no_groups_add_up_to_is_an_error() -> None:
    groups = [Group((1, 2)), Group((3, 4))]
    with pytest.raises(InputError, match="add up to 3"):
        choose(groups, 3, SplitPolicy(), "test")


@given(st.lists(st.integers(1, 6), min_size=1, max_size=12), st.integers(0, 30))
def test_a_reachable_size_is_always_reached(sizes: list[int], target: int) -> None:
    groups, first = [], 0
    for size in sizes:
        groups.append(Group(tuple(range(first, first + size))))
        first += size
    reachable = {0}
    for size in sizes:
        reachable |= {total + size for total in reachable}
    if target in reachable:
        chosen = choose(groups, target, SplitPolicy(), "val")
        assert sum(len(group.task_ids) for group in chosen) == target
        assert len({group.id for group in chosen}) == len(chosen)
    else:
        with pytest.raises(InputError):
            choose(groups, target, SplitPolicy(), "val")
