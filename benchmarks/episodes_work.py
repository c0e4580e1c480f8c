"""Made-up episodes for ``benchmarks.episodes``: two thirds trained, the rest bare and masked.

An episode has 5.4 turns on average, a turn 1.7 KB of UTF-8 text, Chinese and English mixed, over a
catalogue of 20,000 products. One episode in 500 holds a word of its own (``needle-<number>``), one
in 50 the word 雪松. Everything follows from the number of the episode, so any part can be
made alone.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import orjson
import zstandard

from trainer.cores import cores
from trainer.files import write_jsonl

PART = 2_560  # episodes a file
GROUP = 8
NEEDLE_EVERY, CEDAR_EVERY = 500, 50
_HAN = """
便携 迷你 冰箱 家用 宿舍 车载 静音 保温 真空 不锈钢 陶瓷 玻璃 竹制 棉麻 羊毛 真皮 防水 耐磨
可折叠 加厚 轻薄 透气 儿童 成人 男士 女士 学生 办公 户外 露营 登山 跑步 瑜伽 厨房 卧室 浴室 客厅
收纳 书桌 台灯 水杯 雨伞 背包 手表 耳机 键盘 鼠标 音箱 充电器 数据线 毛巾 枕头 被子 床单 窗帘
地毯 拖鞋 衬衫 外套 牛仔裤 连衣裙 运动鞋 零食 坚果 茶叶 咖啡 牛奶 面膜 洗面奶 防晒霜 口红 香水
玩具 积木 拼图 画笔 泡脚桶 恒温 按摩 滚轮 浅灰 奶白 墨绿 加高款 标准款 预算 品牌 优先 详情 翻页
返回 缺货 包邮 旗舰店
"""
_LATIN = """
usb-c wireless portable compact foldable waterproof bluetooth stainless steel cotton leather
bamboo ceramic premium classic series model edition size colour black white blue green grey pink
large medium small pack set kit bundle official store shipping returns rating options price budget
details vintage copper velvet travel office garden kitchen outdoor hiking
"""
BRANDS = (
    "Fennor",
    "小山",
    "林间",
    "Tarnwood",
    "Veja",
    "北岸",
    "Orlo",
    "青禾",
    "Mira",
    "云帆",
    "Kesho",
    "拾光",
)
CATEGORIES = ("bottle", "lamp", "chair", "basin", "bag", "shoes", "watch", "phone")
HAN, LATIN = _HAN.split(), _LATIN.split()
CHUNKS = [f"chunk-{number:04x}" for number in range(16)]
TRIAGE = ("not_frontier", "full_skill_failure_pending_analysis", "model_internalization_deficit")


def products() -> list[tuple[str, str, str]]:
    """Id, line of a result page and category of every product."""
    rng = random.Random("catalogue")
    made = []
    for _ in range(20_000):
        asin = f"{rng.randrange(10**12):012d}"
        title = "".join(rng.choices(HAN, k=4)) + " " + " ".join(rng.choices(LATIN, k=3))
        line = f"[{asin}] {rng.choice(BRANDS)} {title} ¥{rng.randint(9, 999)}"
        made.append((asin, line, rng.choice(CATEGORIES)))
    return made


PRODUCTS = products()


def turn_count(rng: random.Random) -> int:
    """5.4 on average, from 2 to 11."""
    return 2 + sum(rng.random() < 0.38 for _ in range(9))


def episode(number: int) -> dict[str, Any]:
    """The trace of an episode."""
    rng = random.Random(number)
    turns = turn_count(rng)
    won = rng.random() < 0.55
    product = rng.choice(PRODUCTS)
    shown = rng.sample(CHUNKS, rng.randint(0, 6))
    trained = number % 3 < 2
    mode = ("assisted" if shown else "skill_free") if trained else ("bare", "masked")[number % 2]
    steps = [_step(rng, t, turns, number, product) for t in range(turns)]
    trace: dict[str, Any] = {
        "schema_version": "shopsimrl-episode-v4",
        "layout": "slim-v1",
        "episode_id": f"ep-{number:09d}",
        "status": "completed",
        "job": {
            "task_id": number % 1274,
            "sample_id": number % GROUP,
            "seed": 1,
            "split": "train" if trained else "val",
        },
        "provenance": {
            "model": {"checkpoint_id": f"ckpt-{number // 5120:04d}"},
            "skills": {"provider": "none", "assignment": {"mode": mode}},
        },
        "started_at": "2026-11-29T00:00:00+00:00",
        "duration_ms": 900.0,
        "reset": {
            "task_instruction": _wish(rng),
            "user_persona": {"brand": rng.choice(BRANDS), "age": rng.choice(("成人", "学生"))},
        },
        "selected_skills": [
            {"skill_id": skill, "content": f"### {skill}\n先把品牌写进查询", "version": "1"}
            for skill in shown
        ],
        "conversation": [{"role": "system", "content": "You shop for a person."}],
        "steps": steps,
        "final": _final(rng, won, product),
        "error": None,
        "tokens": {"total": 900 * turns, "sampled": 60 * turns, "log_prob_mean": -0.2},
    }
    if trained:
        step = number // 128
        trace["training"] = {
            "purpose": "train", "rollout_step": step, "group_index": number // GROUP,
        }  # fmt: skip
    return trace


def _wish(rng: random.Random) -> str:
    return f"我想买{''.join(rng.choices(HAN, k=5))}，预算 {rng.randint(20, 500)} 元"


def _step(
    rng: random.Random, turn: int, turns: int, number: int, product: tuple[str, str, str]
) -> dict[str, Any]:
    thought = (
        "用户想要" + "".join(rng.choices(HAN, k=12)) + ", so " + " ".join(rng.choices(LATIN, k=10))
    )
    listed = rng.choices(PRODUCTS, k=13)
    page = "page 1 of 8, results 1-20\n" + "\n".join(line for _, line, _ in listed)
    page += "\n说明：" + " ".join(rng.choices(HAN, k=20))
    if turn == 0 and number % CEDAR_EVERY == 7:
        page += " 雪松"
    if turn == 0 and number % NEEDLE_EVERY == 11:
        page += f" needle-{number}"
    search = turn == 0
    arguments = {"query": " ".join(rng.choices(HAN, k=3))} if search else {"value": listed[0][0]}
    name = "search" if search else "click"
    state: dict[str, Any] = {"page_type": "search_results", "search_text": "", "products": []}
    if 0 < turn < turns - 1:
        detail = {"asin": product[0], "title": product[1], "category": product[2]}
        state = {"page_type": "product_detail", "product": detail}
    return {
        "step_index": turn + 1,
        "observation": "",
        "model": {
            "content": thought,
            "reasoning": "",
            "finish_reason": "stop",
            "tool_calls": [{"call_id": "c", "name": name, "arguments": arguments}],
            "usage": {"completion_tokens": rng.randint(30, 90)},
            "latency_ms": 1.5,
        },
        "action": f"{name}[{next(iter(arguments.values()))}]",
        "environment": {
            "done": turn == turns - 1,
            "reward": 0.0,
            "observation": page,
            "observation_state": state,
            "action_feedback": {"valid": rng.random() > 0.03},
        },
    }


def _final(rng: random.Random, won: bool, product: tuple[str, str, str]) -> dict[str, Any] | None:
    if rng.random() < 0.01:
        return None  # a technical failure
    parts = {name: round(rng.random(), 3) for name in ("r_type", "r_att", "r_option", "r_price")}
    reward = 1.0 if won else round(rng.random() * 0.9, 3)
    detail = {**parts, "r_loose": reward, "r_strict": reward, "r_success": float(won)}
    ended = "generation_length" if not won and rng.random() < 0.1 else "purchase"
    return {
        "done": True,
        "reward": reward,
        "reward_detail": detail,
        "termination_reason": ended,
        "purchase": {"asin": product[0], "category": product[2], "price": 25.0},
        "goal": {"asin": product[0], "price_upper": 27},
        "observation": "",
    }


def write_parts(folder: Path, first: int, count: int) -> None:
    """Write episodes ``first`` … as compressed trace files with their groups, on every core."""
    starts = range(first, first + count, PART)
    ends = [min(start + PART, first + count) for start in starts]
    with ProcessPoolExecutor(cores(), get_context("spawn")) as pool:
        for _ in pool.map(_write_part, [folder] * len(ends), starts, ends):
            pass


def _write_part(folder: Path, first: int, end: int) -> None:
    part = folder / f"part-{first // PART:05d}"
    (part / "steps").mkdir(parents=True)
    with zstandard.open(part / "steps" / "traces.jsonl.zst", "wb") as handle:
        for number in range(first, end):
            handle.write(orjson.dumps(episode(number)) + b"\n")
    write_jsonl(part / "groups.jsonl", _groups(range(first, end)))


def _groups(numbers: range) -> Iterator[dict[str, Any]]:
    for index in sorted({number // GROUP for number in numbers}):
        rng = random.Random(f"group-{index}")
        yield {
            "group_index": index,
            "classification": rng.choices(TRIAGE, (90, 7, 3))[0],
            "sample_indices": list(range(GROUP)),
            "advantages": [round(rng.gauss(0, 1), 3) for _ in range(GROUP)],
            "admitted": rng.random() < 0.5,
        }


def long_trace(turns: int = 2_000, size: int = 5_000_000) -> dict[str, Any]:
    """One episode of many turns and about ``size`` bytes."""
    trace = episode(1)
    step = trace["steps"][0]
    text = step["environment"]["observation"]
    wanted = max(200, size // turns - 700)
    text = (text * (wanted // len(text.encode()) + 1)).encode()[:wanted].decode("utf-8", "ignore")
    trace["episode_id"] = "long"
    trace["steps"] = [
        {
            **step,
            "step_index": n + 1,
            "environment": {**step["environment"], "observation": text, "done": n == turns - 1},
        }
        for n in range(turns)
    ]
    return trace
