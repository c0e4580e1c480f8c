"""How much each chunk of S0 moves the starting checkpoint: a gate on 2,400 tasks of its own.

    python -m benchmarks.calibration [--json] [--tasks N] [--seed N] [--checkpoint DIR] [--bank F]

The split ``calibration`` is used for nothing else. Three arms play the same tasks with the same
random numbers: no chunk, each chunk with probability ½ (the published assignment), all chunks.
Coefficients are the published gate's: no-intercept least squares of reward differences, with HC3
standard errors. About two minutes on two free cores.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.config import DEFAULT_MASK_SEED, DEFAULT_SEED
from trainer.engines.local.engine import load_policy
from trainer.engines.local.policy import LocalPolicy
from trainer.gate.assignment import draw_state
from trainer.gate.regression import least_squares
from trainer.rollout.driver import run_episodes
from trainer.rollout.types import EpisodeJob, EpisodeRequest
from trainer.shop.world import World, load_world
from trainer.skills.bank import load_bank
from trainer.skills.types import Chunk

CONFIGS = Path(__file__).resolve().parents[1] / "configs" / "mini"
SPLIT = "calibration"

Array = NDArray[np.float64]


def play(
    world: World, policy: LocalPolicy, jobs: Sequence[EpisodeJob], shown: Sequence[Sequence[Chunk]]
) -> Array:
    """Reward and success (n, 2) of one arm; ``shown`` are the chunks of each job."""
    requests = [
        EpisodeRequest(job, job.episode_id, job.noise_key, tuple(chunks))
        for job, chunks in zip(jobs, shown, strict=True)
    ]
    results = run_episodes(world, policy, requests)
    return np.array([(one.reward["r_strict"], one.success) for one in results], float)


def calibrate(
    world: World, policy: LocalPolicy, bank: Sequence[Chunk], *, tasks: int, seed: int
) -> dict[str, Any]:
    """Means of the three arms and a row a chunk."""
    jobs = [EpisodeJob.of(seed, task_id, 0, SPLIT) for task_id in world.split(SPLIT)[:tasks]]
    mask_seed = DEFAULT_MASK_SEED + seed - DEFAULT_SEED
    masks = np.array(
        [
            [draw_state(mask_seed, (SPLIT, job.task_id, 0), c.skill_id, 2) for c in bank]
            for job in jobs
        ],
        float,
    )
    bare = play(world, policy, jobs, [()] * len(jobs))
    masked = play(
        world,
        policy,
        jobs,
        [[c for c, on in zip(bank, row, strict=True) if on] for row in masks],
    )
    full = play(world, policy, jobs, [tuple(bank)] * len(jobs))
    fit = least_squares(masks, masked - bare)
    return {
        "tasks": len(jobs),
        "seed": seed,
        **{
            f"{arm}_{name}": float(values[:, column].mean())
            for arm, values in (("bare", bare), ("masked", masked), ("full", full))
            for column, name in enumerate(("reward", "success"))
        },
        "residual_sd": float(fit.residuals[:, 0].std()),
        "chunks": [
            {
                "skill_id": chunk.skill_id,
                "content": chunk.content,
                "beta": float(fit.beta[place, 0]),
                "se": float(fit.standard_error[place, 0]),
                "t": float(fit.beta[place, 0] / fit.standard_error[place, 0]),
            }
            for place, chunk in enumerate(bank)
        ],
    }


def figures(found: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Means of the arms and effects of the chunks, as every benchmark prints its figures."""
    values = {
        f"{arm}_{name}": found[f"{arm}_{name}"]
        for arm in ("bare", "masked", "full")
        for name in ("reward", "success")
    }
    values |= {f"beta_{row['skill_id']}": row["beta"] for row in found["chunks"]}
    return {
        name: {"value": value, "unit": "", "peer": None, "ratio": None}
        for name, value in values.items()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the calibration."""
    parser = argparse.ArgumentParser(description="Calibrate S0 on the starting checkpoint.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--tasks", type=int, default=2_400)
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--checkpoint", type=Path, default=CONFIGS / "checkpoint")
    parser.add_argument("--bank", type=Path, default=CONFIGS / "skillbank.json")
    options = parser.parse_args(arguments)
    started = time.monotonic()
    world = load_world("mini")
    policy, threads = load_policy(options.checkpoint, world, threads=options.threads)
    bank = load_bank(options.bank).chunks
    found = calibrate(world, policy, bank, tasks=options.tasks, seed=options.seed)
    found |= {"threads": threads, "seconds": round(time.monotonic() - started, 1)}
    if options.json:
        json.dump({"figures": figures(found), **found}, sys.stdout)
        return
    for arm in ("bare", "masked", "full"):
        print(f"{arm:7} success {found[f'{arm}_success']:.3f}", end="  ")
        print(f"reward {found[f'{arm}_reward']:.3f}")
    for row in found["chunks"]:
        print(f"{row['beta']:+.3f} ± {row['se']:.3f}  t {row['t']:+5.1f}  {row['content']}")
    print(f"{found['tasks']} tasks, {found['seconds']} s")


if __name__ == "__main__":
    main()
