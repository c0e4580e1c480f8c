"""How fast the embedded engine samples and trains, beside TRL's ``GRPOTrainer`` if installed.

    python -m benchmarks.embedded [--json] [--repeats N] [--threads N] [--no-peer]

Equal work: 256 episodes of 139 tokens (18 sampled, 6 turns, groups of 8 with the same prompt) and
one pass of training over all of them, by networks of 0.7 million parameters, in one process, in
turns. Our updates and TRL's take 64 episodes each; TRL is also given its own best setting, and
every ratio is to its better figure. The real work, without a peer: 256 episodes of the shop with
the shipped checkpoint and the bank of the demonstration, and a training update of 128 of them.
Figures are medians.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if not __package__:  # started as a file
    sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from benchmarks.embedded_work import EpisodeShape, FixedShapeEngine  # noqa: E402
from trainer.engines.local.engine import load_policy  # noqa: E402
from trainer.engines.local.threads import use_threads  # noqa: E402
from trainer.engines.local.update import Learner, UpdateSettings  # noqa: E402
from trainer.grpo.engine import TrainingEpisode  # noqa: E402
from trainer.rollout.driver import run_episodes  # noqa: E402
from trainer.rollout.types import EpisodeJob, EpisodeRequest, EpisodeResult  # noqa: E402
from trainer.shop.world import World, load_world  # noqa: E402
from trainer.skills.bank import load_bank  # noqa: E402
from trainer.skills.types import Chunk  # noqa: E402

EPISODES, GROUPS_AN_UPDATE, GROUP = 256, 8, 8
TRL_SETTINGS = ((256, 32, 2), (128, 32, 4))  # generated, micro-batch, accumulated
SHOWN_SHARE = 0.45  # of the chunks; a fifth of the groups sees none


@dataclass
class Times:
    """Seconds of every repeat."""

    rollout: list[float] = field(default_factory=list)
    update: list[float] = field(default_factory=list)

    def per_second(self, episodes: int) -> dict[str, float]:
        """Episodes a second: rollout, update, and both together."""
        rollout, update = statistics.median(self.rollout), statistics.median(self.update)
        return {
            "rollout": episodes / rollout,
            "update": episodes / update,
            "step": episodes / (rollout + update),
        }


@contextmanager
def timing(into: list[float]) -> Iterator[None]:
    """Note the seconds of a block."""
    started = time.perf_counter()
    yield
    into.append(time.perf_counter() - started)


def equal_work(repeats: int, peer: bool) -> dict[str, dict[str, Any]]:
    """Our engine and TRL in turns on the same shape of episodes."""
    shape = EpisodeShape(group=GROUP)
    engine = FixedShapeEngine(shape)
    ours = Times()
    theirs = {setting: Times() for setting in TRL_SETTINGS} if peer else {}
    for repeat in range(repeats + 1):
        times = Times() if repeat == 0 else ours
        with timing(times.rollout):
            groups = engine.rollout(EPISODES // GROUP, seed=repeat)
        with timing(times.update):
            _train(engine, groups)
        for setting, measured in theirs.items():
            if repeat:
                _peer_times(shape, setting, measured)
    mine = ours.per_second(EPISODES)
    others = [times.per_second(setting[0]) for setting, times in theirs.items()]
    return {
        f"{name}_episodes_per_s": figure(
            value, "episodes/s", max((other[name] for other in others), default=None)
        )
        for name, value in mine.items()
    }


def _train(engine: FixedShapeEngine, groups: Sequence[Sequence[TrainingEpisode]]) -> None:
    for start in range(0, len(groups), GROUPS_AN_UPDATE):
        engine.update(groups[start : start + GROUPS_AN_UPDATE])


def _peer_times(shape: EpisodeShape, setting: tuple[int, int, int], into: Times) -> None:
    from benchmarks.embedded_peer import TrlSetting, measure

    with redirect_stdout(sys.stderr):  # TRL prints its own summary
        times = measure(shape, TrlSetting(*setting), generations=2)
    into.rollout += times.rollout
    into.update += times.update


def shop_work(repeats: int, threads: int) -> dict[str, dict[str, Any]]:
    """The demonstration's own work: shop, traces and advantages included."""
    world = load_world("mini")
    policy, _ = load_policy(ROOT / "configs/mini/checkpoint", world, threads=threads)
    bank = load_bank(ROOT / "configs/mini/skillbank.json")
    learner = Learner(policy.model, UpdateSettings())
    times = Times()
    counts = []
    for repeat in range(repeats + 1):
        measured = Times() if repeat == 0 else times
        requests = shop_requests(world, bank.chunks, repeat)
        with timing(measured.rollout):
            results = run_episodes(world, policy, requests)
        groups = varied_groups(results)[: 2 * GROUPS_AN_UPDATE]
        for half in (groups[:GROUPS_AN_UPDATE], groups[GROUPS_AN_UPDATE:]):
            batch = [episode for group in half for episode in group]
            spent: list[float] = []
            with timing(spent):
                learner.update(batch)
            measured.update += [spent[0] / len(batch) * GROUPS_AN_UPDATE * GROUP]
        counts.append(sum(len(result.tokens.token_ids) for result in results if result.tokens))
    rollout, update = statistics.median(times.rollout), 2 * statistics.median(times.update)
    return {
        "shop_rollout_256_s": figure(rollout, "s"),
        "shop_update_128_s": figure(update, "s"),
        "shop_step_s": figure(rollout + update, "s"),
        "shop_tokens_per_episode": figure(sum(counts) / len(counts) / EPISODES, "tokens"),
    }


def shop_requests(world: World, chunks: Sequence[Chunk], repeat: int) -> list[EpisodeRequest]:
    """A step's groups: a fifth without chunks, the others with a fixed pseudo-random part."""
    tasks = world.split("train")
    requests = []
    for index in range(EPISODES // GROUP):
        place = repeat * (EPISODES // GROUP) + index
        shown = tuple(
            chunk
            for number, chunk in enumerate(chunks)
            if place % 5 and (place * 7 + number * 13) % 100 < 100 * SHOWN_SHARE
        )
        for sample in range(GROUP):
            job = EpisodeJob.of(1, tasks[place % len(tasks)], sample, "train")
            name = f"{place}-{sample}"
            requests.append(EpisodeRequest(job, name, name, shown))
    return requests


def varied_groups(results: Sequence[EpisodeResult]) -> list[list[TrainingEpisode]]:
    """The groups whose rewards differ, with their advantages."""
    groups = []
    for start in range(0, len(results), GROUP):
        group = results[start : start + GROUP]
        rewards = [result.reward["reward"] for result in group]
        if max(rewards) - min(rewards) > 1e-6:
            mean = sum(rewards) / GROUP
            groups.append(
                [
                    TrainingEpisode(result.tokens, reward - mean)
                    for result, reward in zip(group, rewards, strict=True)
                    if result.tokens is not None
                ]
            )
    return groups


def figure(value: float, unit: str, peer: float | None = None) -> dict[str, Any]:
    """One figure; ``ratio`` is value to peer where there is one."""
    return {
        "value": round(value, 3),
        "unit": unit,
        "peer": None if peer is None else round(peer, 3),
        "ratio": None if peer is None else round(value / peer, 3),
    }


def cpu_name() -> str:
    """The processor as Linux names it, else what Python knows."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(": ", 1)[1] for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def machine(threads: int, peer: bool) -> dict[str, Any]:
    """Where and with what it was measured."""
    facts: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "threads": threads,
        "torch": torch.__version__,
        "load_before": os.getloadavg()[0],
    }
    if peer:
        from benchmarks.embedded_peer import version

        facts["peer"] = version()
    return facts


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--repeats", type=int, default=5, help="after one to warm up")
    parser.add_argument("--threads", type=int, help="instead of timing one and two")
    parser.add_argument("--no-peer", action="store_true", help="leave TRL out")
    options = parser.parse_args(arguments)
    threads = use_threads(options.threads).threads
    peer = not options.no_peer and importlib.util.find_spec("trl") is not None
    facts = machine(threads, peer)
    figures = {**equal_work(options.repeats, peer), **shop_work(options.repeats, threads)}
    if options.json:
        print(json.dumps({"figures": figures, "machine": facts}))
        return 0
    print(json.dumps(facts))
    for name, found in figures.items():
        beside = "" if found["peer"] is None else f"  TRL {found['peer']}  ratio {found['ratio']}"
        print(f"{name:28} {found['value']:10} {found['unit']}{beside}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
