"""The synthetic catalogue: deterministic, varied, as damaged as the real one on request."""

from __future__ import annotations

import re
from collections import Counter

from trainer.shop.price import PriceTable
from trainer.shop.profiles import STANDARD
from trainer.shop.records import load_records
from trainer.shop.session import ShopSession
from trainer.shop.synthetic import SyntheticSettings, generate_records, records_sha256
from trainer.shop.synthetic.noise import NOISE
from trainer.shop.types import Action, StepResult, Task
from trainer.shop.world import World, load_world

LARGE = list(generate_records(SyntheticSettings(products=1500, seed=4)))


def test_the_bundled_catalogue_keeps_its_hash() -> None:
    assert load_world("standard").catalogue.sha256 == (
        "5dea4b9e087053536c3811ce97ce6234befe11ef37a0b146c933b89cef4e8f7c"
    )


def test_the_same_settings_give_the_same_bytes_and_another_seed_others() -> None:
    settings = SyntheticSettings(products=40, noise=0.1)
    assert records_sha256(generate_records(settings)) == records_sha256(generate_records(settings))
    other = SyntheticSettings(products=40, seed=2, noise=0.1)
    assert records_sha256(generate_records(settings)) != records_sha256(generate_records(other))


def test_ids_are_distinct_and_twelve_digits() -> None:
    asins = [record["asin"] for record in LARGE]
    assert len(set(asins)) == len(asins)
    assert all(re.fullmatch(r"\d{12}", asin) for asin in asins)


def test_both_languages_all_domains_and_near_duplicates_occur() -> None:
    chinese = sum("›" in r["category"] and r["category"][0] >= "一" for r in LARGE)
    assert 0.6 * len(LARGE) < chinese < 0.8 * len(LARGE)
    assert len({record["domain_en_short"] for record in LARGE}) == 9
    kinds = Counter((r["shop_name"], r["category"]) for r in LARGE)
    assert sum(count for count in kinds.values() if count > 1) > len(LARGE) / 4


def test_axes_with_and_without_a_price_effect_occur() -> None:
    data = load_records(LARGE, STANDARD, sha256="x", source="test")
    axes = Counter(len(PriceTable.of(p).axes) for p in data.catalogue.products.values())
    assert axes[0] > 100
    assert axes[1] > 500
    assert axes[2] > 5


def test_short_texts_of_persona_tasks_often_hide_the_budget() -> None:
    tasks = [r["instructions"][0] for r in LARGE if r.get("user_persona")]
    hidden = [t for t in tasks if t["instruction"] != t["instruction_simple"]]
    assert len(hidden) > len(tasks) / 2
    assert not any(re.search(r"预算|yuan", t["instruction_simple"]) for t in hidden)


def test_without_noise_every_task_of_one_price_axis_can_be_won_with_its_target() -> None:
    world = load_world("standard")
    winnable = [t for t in world.tasks.values() if len(world.page(t.asin).prices.axes) < 2]
    assert len(winnable) > 40
    for task in winnable:
        assert buy_target(world, task).reward_detail["r_success"] == 1, task


def buy_target(world: World, task: Task) -> StepResult:
    session = ShopSession(world, task.task_id)
    session.reset()
    session.step(Action("search", task.name))
    session.step(Action("click", task.asin))
    wanted = {option.lower() for option in task.goal_options}
    for axis, values in world.page(task.asin).product.options.items():
        value = next((value for value in values if value in wanted), values[0])
        session.step(Action("click", f"{axis}={value}"))
    return session.step(Action("click", "buy now"))


def test_every_noise_kind_changes_some_record() -> None:
    clean = records_sha256(generate_records(SyntheticSettings(products=300, seed=5)))
    assert len(NOISE) == 14
    noisy = list(generate_records(SyntheticSettings(products=300, seed=5, noise=0.3)))
    assert records_sha256(noisy) != clean
    text = str(noisy)
    for trace in ("?爆款", "🔥爆款", "已下架款式", "' 颜色分类'", "均码/One Size", "每月分期"):
        assert trace in text
    assert any(r["pricing"] == [] for r in noisy)
    assert any(r["instructions"][0]["attributes"] == [] for r in noisy)
    assert any(r["instructions"][0]["attributes"] == [" "] for r in noisy)
    assert any(r["customization_options"].get("套餐") == [] for r in noisy)
    assert any(r["customization_options"].get("赠品", 0) is None for r in noisy)
    personas = [r["user_persona"] for r in noisy if r.get("user_persona")]
    assert any(p["用户ID"].endswith(",") for p in personas)
    assert any("交易特征" in p["行为特征"] for p in personas)
    assert any("," in p["行为特征"]["最近14天搜索关键词"] for p in personas)
    assert any("注册渠道" not in p for p in personas)
