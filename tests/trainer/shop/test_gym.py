"""The Gymnasium-style class, and the OpenEnv adapter where OpenEnv is installed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.trainer.shop.factories import product, task, world
from trainer.errors import InputError
from trainer.shop.gym import ShopEnv, register
from trainer.shop.profiles import STANDARD
from trainer.shop.session import EpisodeOver
from trainer.shop.world import World

TARGET = "932040992888"


@pytest.fixture
def shop() -> World:
    persona = {"用户ID": "u"}
    return world([product()], task(persona=persona), task(task_id=1), profile=STANDARD)


def test_an_episode_from_reset_to_purchase(shop: World) -> None:
    env = ShopEnv(world=shop)
    text, info = env.reset(options={"task_id": 0})
    assert (info["task_id"], info["instruction"]) == (0, "想买一台洗衣机")
    assert info["persona"] == {"用户ID": "u"}
    assert [tool["function"]["name"] for tool in info["tools"]] == ["search"]
    assert text.startswith("【搜索首页】")
    for action in ("search[洗衣机]", f"click[{TARGET}]", ("click", "颜色分类=白色")):
        _, reward, terminated, truncated, info = env.step(action)
        assert (reward, terminated, truncated) == (0.0, False, False)
    env.step("click[尺码=大号]")
    _, reward, terminated, truncated, info = env.step("click[buy now]")
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert info["termination_reason"] == "purchase"
    assert info["goal"]["asin"] == TARGET
    with pytest.raises(EpisodeOver):
        env.step("search[x]")


def test_the_action_limit_truncates(shop: World) -> None:
    env = ShopEnv(world=shop)
    env.reset(seed=1)
    results = [env.step("nonsense") for _ in range(30)]
    assert [result[2:4] for result in results[:-1]] == [(False, False)] * 29
    assert results[-1][2:4] == (False, True)
    assert results[-1][4]["termination_reason"] == "action_limit"


@pytest.mark.parametrize("action", [None, 3, "", ("buy", "x"), ("click",), {"a": 1}])
def test_no_action_raises(shop: World, action: Any) -> None:
    env = ShopEnv(world=shop)
    env.reset(seed=1)
    *_, info = env.step(action)
    assert info["feedback"]["valid"] is False


def test_a_seed_fixes_the_tasks(shop: World) -> None:
    def drawn(seed: int) -> list[int]:
        env = ShopEnv(world=shop)
        env.reset(seed=seed)
        return [env.reset()[1]["task_id"] for _ in range(20)]

    assert drawn(5) == drawn(5)
    assert set(drawn(5)) == {0, 1}


def test_without_persona_the_full_request_is_shown(shop: World) -> None:
    _, info = ShopEnv(world=shop, persona=False).reset(options={"task_id": 0})
    assert "预算" in info["instruction"]
    assert info["persona"] == {}


def test_render_shows_the_page_in_its_mode_only(shop: World) -> None:
    env = ShopEnv(world=shop, render_mode="ansi")
    text, _ = env.reset(seed=1)
    assert env.render() == text
    assert ShopEnv(world=shop).render() is None


def test_a_step_needs_a_reset_and_a_split_needs_tasks(shop: World) -> None:
    with pytest.raises(RuntimeError, match="reset"):
        ShopEnv(world=shop).step("search[x]")
    with pytest.raises(InputError, match="unknown split"):
        ShopEnv(world=shop, split="nope")


def test_gymnasium_makes_the_environment() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    register()
    env = gymnasium.make("intraskill/Shop-v0", split="val")
    observation, info = env.reset(seed=3)
    assert observation in env.observation_space
    assert info["tools"]


def test_openenv_runs_an_episode(shop: World) -> None:
    pytest.importorskip("openenv.core.env_server")
    from trainer.shop.adapters.openenv import ShopAction, ShopEnvironment

    env = ShopEnvironment(shop)
    assert env.reset(task_id=0).metadata["task_id"] == 0
    page = env.step(ShopAction(tool="search", argument="洗衣机"))
    assert TARGET in page.actions
    for argument in (TARGET, "颜色分类=白色", "尺码=大号", "buy now"):
        page = env.step(ShopAction(tool="click", argument=argument))
    assert (page.done, page.reward) == (True, 1.0)
    assert env.state.step_count == 5


@pytest.mark.parametrize("task_id", ["0", True, 1.0, [1], {}, 10**30, None.__class__])
def test_what_names_no_task_is_one_clear_error(shop: World, task_id: object) -> None:
    with pytest.raises(InputError, match="unknown task"):
        ShopEnv(world=shop).reset(options={"task_id": task_id})


def test_a_numpy_integer_names_a_task(shop: World) -> None:
    numpy = pytest.importorskip("numpy")
    assert ShopEnv(world=shop).reset(options={"task_id": numpy.int64(1)})[1]["task_id"] == 1


def test_wrong_arguments_are_named(shop: World) -> None:
    with pytest.raises(InputError, match="render_mode"):
        ShopEnv(world=shop, render_mode="human")
    with pytest.raises(InputError, match="options"):
        ShopEnv(world=shop).reset(options=3)  # type: ignore[arg-type]
