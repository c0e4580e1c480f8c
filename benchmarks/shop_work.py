"""What ``benchmarks.shop`` measures in process: data of real size, steps, whole episodes,
memory."""

from __future__ import annotations

import json
import random
import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from trainer.shop.data.cleaning import Cleaner
from trainer.shop.session import ShopSession
from trainer.shop.synthetic import SyntheticSettings, generate_records
from trainer.shop.types import Action
from trainer.shop.world import World, load_world

FILLER_WORDS = 9_000
PERSONA_SHARE = 0.2
PAGE = 20
TURNING_SHARE = 0.3  # of the episodes look at the second page

Figure = dict[str, Any]


def figure(
    value: float, unit: str, peer: float | None = None, ratio: float | None = None
) -> Figure:
    """One figure; a ``ratio`` above 1 says that ours is the better one."""
    return {"value": value, "unit": unit, "peer": peer, "ratio": ratio}


def percentile(values: Sequence[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def records(products: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Cleaned records whose titles and attribute lists have real length."""
    settings = SyntheticSettings(
        products=products, seed=seed, filler_words=FILLER_WORDS, persona_share=PERSONA_SHARE
    )
    return Cleaner().clean(generate_records(settings))


def write_archive(path: Path, products: int) -> None:
    """``products`` records as one JSON array (before the filter drops three in a hundred)."""
    with path.open("w", encoding="utf-8") as file:
        for number, record in enumerate(records(products)):
            file.write("," if number else "[")
            json.dump(record, file, ensure_ascii=False)
        file.write("]\n")


def memory(archive: Path) -> dict[str, Figure]:
    """Resident memory of a fresh process that holds the world and has used it, and its load
    time."""
    started = time.thread_time()
    world = load_world("compat", catalogue=archive)
    seconds = time.thread_time() - started
    rng = random.Random(2)
    for _ in range(300):
        for _step in shopping(world, rng.choice(world.split("all")), rng):
            pass
    status = Path("/proc/self/status").read_text().splitlines()
    sizes = dict(line.split(":", 1) for line in status)
    now, peak = (int(sizes[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return {
        "memory_mb": figure(now, "MB"),
        "memory_peak_mb": figure(peak, "MB"),
        "load_s": figure(seconds, "s"),
        "products": figure(len(world.catalogue), "products"),
    }


def shopping(world: World, task_id: int, rng: random.Random) -> Iterator[tuple[str, float]]:
    """One episode up to its purchase: the kind and the seconds of every call."""
    session = ShopSession(world, task_id)
    yield "reset", timed(session.reset)
    query = f"{session.task.instruction_simple} {rng.randrange(10**9)}"  # never asked before
    yield "search", timed(lambda: session.step(Action("search", query)))
    for click in _clicks(world, session, rng):
        action = Action("click", click)
        yield "click", timed(lambda act=action: session.step(act))  # type: ignore[misc]


def _clicks(world: World, session: ShopSession, rng: random.Random) -> list[str]:
    """Look at one product, go back, now and then turn the page, choose another and buy it."""
    listed = [row["asin"] for row in session.observe().state["products"]]
    target = session.task.asin
    chosen = target if target in listed else rng.choice(listed)
    options = world.catalogue.products[chosen].options
    choices = [f"{axis}={rng.choice(values)}" for axis, values in options.items()]
    turning = ["next >", "< prev"] if len(listed) == PAGE and rng.random() < TURNING_SHARE else []
    return [rng.choice(listed), "< prev", *turning, chosen, *choices, "buy now"]


def timed(work: Callable[[], object]) -> float:
    started = time.thread_time()
    work()
    return time.thread_time() - started


def play(archive: Path, profile: str, seconds: float) -> dict[str, list[float]]:
    """Seconds of every call of as many episodes as fit into ``seconds``, by kind."""
    world = load_world(profile, catalogue=archive)
    rng = random.Random(1)
    calls: dict[str, list[float]] = {"reset": [], "search": [], "click": []}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for kind, took in shopping(world, rng.choice(world.split("all")), rng):
            calls[kind].append(took)
    return calls


def compat_steps(archive: Path, seconds: float) -> dict[str, Figure]:
    """Non-search steps with the published text, the purchase with its score included."""
    clicks = play(archive, "compat", seconds)["click"]
    return {
        "step_us": figure(statistics.median(clicks) * 1e6, "us"),
        "step_p95_us": figure(percentile(clicks, 95) * 1e6, "us"),
    }


def standard_episodes(archive: Path, seconds: float, peer: float) -> dict[str, Figure]:
    """Whole episodes of the standard profile: searches, 20-row pages, Chinese text, score."""
    calls = play(archive, "standard", seconds)
    steps = len(calls["search"]) + len(calls["click"])
    rate = steps / sum(map(sum, calls.values()))
    return {"episode_steps_per_s": figure(rate, "1/s", peer, rate / peer)}


def task_ids(archive: Path) -> tuple[int, ...]:
    """A few tasks of the archive, without loading a world."""
    head = archive.open(encoding="utf-8").read(1 << 20)
    return tuple(int(found) for found in re.findall(r'"task_id": (\d+)', head))
