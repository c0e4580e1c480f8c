"""The gold firewall: the published rules to the letter, and nothing private in any spelling."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from tests.trainer.analyst.leaks import Leak, clean_rules, planted
from tests.trainer.analyst.played import browse_and_buy
from trainer.analyst.firewall import Firewall, GoldFacts, gold_facts
from trainer.analyst.firewall.published import published_findings
from trainer.shop.world import World, load_world

FACTS = GoldFacts(
    gold_titles=("海风 迷你冰箱",),
    seen_titles=("海风 宿舍冰箱 智能",),
    gold_brands=("海风",),
    seen_brands=("海风家电",),
    gold_options=("白色", "象牙白双门款"),
    gold_axes={"白色": "颜色"},
    gold_attributes=("静音",),
    identifiers=("000000000001",),
    prices=(250.0,),
)


@pytest.fixture(scope="session")
def standard() -> World:
    """The synthetic catalogue in the published schema."""
    return load_world("standard")


def facts_of(world: World, count: int) -> list[GoldFacts]:
    tasks = world.split("train")[:count]
    return [gold_facts(browse_and_buy(world, task), world.catalogue) for task in tasks]


@pytest.mark.parametrize(
    ("text", "facts", "expected"),
    [
        ("先看 ASIN 再买", FACTS, ["mentions_asin"]),
        ("see asin.", None, ["mentions_asin"]),
        ("编号 1234567890", None, ["contains_long_identifier"]),
        ("编号 123456789", None, []),
        ("a1234567890", None, []),
        ("as in task_17", None, ["contains_task_id"]),
        ("TASK 3", None, ["contains_task_id"]),
        ("选择海风 迷你冰箱", FACTS, ["copies_instance_product_title"]),
        ("选择海风 宿舍冰箱 智能", FACTS, ["copies_instance_product_title"]),
        ("选择海风 宿舍冰箱 智能", None, []),
        ("海风家电更好", FACTS, ["copies_instance_brand"]),
        ("海风更好", FACTS, []),
        ("选白色", FACTS, []),
        ("选象牙白双门款", FACTS, ["copies_gold_option"]),
        ("task-1 ASIN", None, ["mentions_asin", "contains_task_id"]),
    ],
)
def test_the_published_rules_hold_to_the_letter(
    text: str, facts: GoldFacts | None, expected: list[str]
) -> None:
    assert published_findings({"a": ["x", text], "b": 1}, facts) == expected


def test_the_compat_profile_finds_what_was_published_and_no_more() -> None:
    wall = Firewall("compat")
    assert wall.card("选白色，或者海风", FACTS) == []
    assert [f.rule for f in wall.card("象牙白双门款", FACTS)] == ["copies_gold_option"]
    assert wall.candidate("象牙白双门款", [FACTS]) == []


def test_all_findings_are_listed_with_what_was_found() -> None:
    findings = Firewall().card({"a": "海风的白色款，静音", "b": ["task-7"]}, FACTS)
    assert {(f.rule, f.found) for f in findings} == {
        ("contains_task_id", ""),
        ("contains_task_id", "task-7"),
        ("copies_instance_brand", "海风"),
        ("copies_gold_option", "白色"),
        ("copies_gold_attribute", "静音"),
    }


@pytest.mark.parametrize(
    "text",
    ["颜色选白", "红白相间以外", "the user's small things", "slight", "预算二百五", "步骤 1 至 9"],
)
def test_a_single_character_is_no_leak_unless_it_stands_where_a_value_stands(text: str) -> None:
    facts = replace(FACTS, gold_options=("s", "大"), gold_axes={"大": "尺码"}, gold_brands=())
    assert Firewall().card(text, facts) == []
    for leak in ("choose s", "尺码选大", "尺码：大", "size=S"):
        assert [f.rule for f in Firewall().card(leak, facts)] == ["copies_gold_option"], leak


def corpus(worlds: list[World]) -> list[tuple[World, Leak]]:
    rng = random.Random("planted leaks")
    return [(world, leak) for world in worlds for leak in planted(facts_of(world, 12), rng)]


def test_no_planted_leak_passes_into_a_card_or_a_candidate(mini: World, standard: World) -> None:
    leaks = corpus([mini, standard])
    walls = {id(world): Firewall("standard", world.catalogue) for world in (mini, standard)}
    passed = [
        leak
        for world, leak in leaks
        if not walls[id(world)].card({"text": leak.text}, leak.facts)
        or not walls[id(world)].candidate({"text": leak.text}, [leak.facts])
    ]
    assert len(leaks) >= 200
    assert set(Counter(leak.field for _, leak in leaks)) == {
        "title", "title-part", "title-shuffled", "brand", "option", "attribute", "id",
    }  # fmt: skip
    assert [(leak.field, leak.disguise, leak.text) for leak in passed] == []


def test_brands_and_options_of_the_catalogue_need_no_trace(mini: World, standard: World) -> None:
    for world in (mini, standard):
        wall = Firewall("standard", world.catalogue)
        for product in list(world.catalogue.products.values())[::37]:
            rules = [f.rule for f in wall.candidate(f"prefer ({product.brand}) 的商品", [])]
            assert rules == ["names_catalogue_brand"], product.brand


def test_clean_rules_pass(mini: World, standard: World) -> None:
    rules = clean_rules(200, random.Random("clean rules"))
    for world in (mini, standard):
        wall = Firewall("standard", world.catalogue)
        facts = facts_of(world, 12)
        alarms = [
            (rule, findings)
            for place, rule in enumerate(rules)
            if (findings := wall.candidate(rule, [facts[place % 12], facts[(place + 1) % 12]]))
        ]
        assert len(alarms) <= 0.02 * len(rules), alarms
