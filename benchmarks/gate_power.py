"""Published against standard gate at equal total rollouts, on worlds with known effects.

    python -m benchmarks.gate_power [--gates N] [--json]

Each gate spends 800 rollouts. Published: 400 tasks bare and masked. Standard: 375 tasks in
complementary pairs, 50 of them also bare. Worlds are calibrated to the four published gates
(``gate_simulation``). The bars are judged on additive outcomes; the table of the harder logistic
world is printed beside them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
if not __package__:  # started as a file
    sys.path.insert(0, str(ROOT))

from benchmarks.gate_simulation import (  # noqa: E402
    PUBLISHED,
    AdditiveWorld,
    LogisticWorld,
    World,
    best_bank,
    random_masks,
)
from trainer.gate.regression import least_squares  # noqa: E402
from trainer.gate.selection import Selection  # noqa: E402
from trainer.gate.selection import select as select_published  # noqa: E402
from trainer.gate.standard.analysis import analyse  # noqa: E402
from trainer.gate.standard.design import base_array  # noqa: E402
from trainer.gate.standard.estimate import Pairs  # noqa: E402
from trainer.gate.standard.judge import select as select_standard  # noqa: E402
from trainer.gate.standard.settings import StandardSettings  # noqa: E402

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
ROLLOUTS = 800
BARE = 50
BUDGET = 16
FALSE_ADOPTION = 0.05


@dataclass
class Record:
    """What one profile did in every simulated gate of one world."""

    beta: list[Array] = field(default_factory=list)
    shrunk: list[Array] = field(default_factory=list)
    statistic: list[Array] = field(default_factory=list)
    covered: list[Flags] = field(default_factory=list)
    kept: list[Flags] = field(default_factory=list)
    regret: list[float] = field(default_factory=list)

    def add(self, world: World, selection: Selection, lost: float, beta: Array, se: Array) -> None:
        """Note one gate."""
        self.beta.append(beta)
        self.statistic.append(beta / se)
        self.covered.append(np.abs(beta - world.effects) <= 1.96 * se)
        self.kept.append(np.array([c in selection.selected for c in world.layout.columns]))
        self.regret.append(lost)


def published_gate(world: World, rng: np.random.Generator) -> tuple[Selection, Array, Array]:
    """400 tasks, one bare and one masked rollout each."""
    n = ROLLOUTS // 2
    tasks = world.tasks(n, rng)
    shown = random_masks(world.layout, n, rng)
    bare = world.play(tasks, np.zeros_like(shown), rng)
    fit = least_squares(shown, (world.play(tasks, shown, rng) - bare)[:, None])
    coefficients = dict(zip(world.layout.columns, fit.beta[:, 0].tolist(), strict=True))
    selection = select_published(world.layout, coefficients, BUDGET)
    return selection, fit.beta[:, 0], fit.standard_error[:, 0]


def standard_gate(
    world: World, rng: np.random.Generator, settings: StandardSettings
) -> tuple[Selection, Array, Array, Array]:
    """375 tasks in complementary pairs, 50 of them also bare."""
    n = (ROLLOUTS - BARE) // 2
    layout = world.layout
    tasks = world.tasks(n, rng)
    base = base_array(layout.slots, n, np.random.RandomState(rng.integers(2**31)))
    shown = np.zeros((n, 2, len(layout.columns)))
    index = {column: position for position, column in enumerate(layout.columns)}
    for s, slot in enumerate(layout.slots):
        for v, version in enumerate(slot.versions, 1):
            shown[:, :, index[version]] = base[:, s] == v
    scores = np.stack([world.play(tasks, shown[:, i], rng) for i in (0, 1)], axis=1)
    bare = np.full((n, 1), np.nan)
    with_bare = rng.permutation(n)[:BARE]
    bare[with_bare, 0] = world.play(tasks[with_bare], np.zeros((BARE, len(layout.columns))), rng)
    pairs = Pairs(tuple(range(n)), layout.columns, ("reward",), shown, scores[:, :, None], bare)
    found = analyse(layout, pairs, settings)
    decisions = found.decisions.named(layout)
    coefficients = dict(zip(layout.columns, found.beta.tolist(), strict=True))
    effects = dict(zip(layout.columns, found.shrunk.mean.tolist(), strict=True))
    selection = select_standard(layout, coefficients, effects, decisions, BUDGET)
    return selection, found.beta, found.fit.standard_error[:, 0], found.shrunk.mean


def simulate(world: World, gates: int, seed: int) -> tuple[Record, Record]:
    """Both profiles on the same world, each with its own luck."""
    best = best_bank(world)
    value = cache(lambda bank: best - world.value(bank))
    published, standard = Record(), Record()
    settings = StandardSettings()
    for gate in range(gates):
        rng = np.random.default_rng([seed, gate])
        selection, beta, se = published_gate(world, rng)
        published.add(world, selection, value(selection.selected), beta, se)
        selection, beta, se, shrunk = standard_gate(world, rng, settings)
        standard.add(world, selection, value(selection.selected), beta, se)
        standard.shrunk.append(shrunk)
    return published, standard


def columns_of(world: World, kind: str, effect: float) -> list[int]:
    """Columns of a kind with this planted effect. A rewrite that equals its target is useless."""
    items = list(world.layout.interventions.values())
    useless_rewrite = [i for i, item in enumerate(items) if item.operation == "REWRITE"]
    if kind == "candidate" and effect == 0.0:
        zero = [i for i, e in enumerate(world.effects) if e == 0.0 and items[i].kind == kind]
        return zero + useless_rewrite
    family = {items[i].logical_chunk_id for i in useless_rewrite}
    return [
        i
        for i, item in enumerate(items)
        if item.kind == kind and world.effects[i] == effect and item.logical_chunk_id not in family
    ]


def figures_of(world: World, record: Record) -> dict[str, float]:
    """The figures of one profile on one world."""
    beta, kept = np.array(record.beta), np.array(record.kept)
    statistic = np.array(record.statistic)
    useless = columns_of(world, "candidate", 0.0)
    additions = [i for i in useless if world.effects[i] == 0.0]
    helpful = columns_of(world, "candidate", 0.05)
    threshold = np.quantile(statistic[:, additions], 1 - FALSE_ADOPTION)
    null_now = ~kept[:, columns_of(world, "current", 0.0)]
    figures = {
        "rmse": float(np.sqrt(np.mean((beta - world.effects) ** 2))),
        "coverage": float(np.mean(record.covered)),
        "null_adopted": float(kept[:, useless].mean()),
        "helpful_adopted": float(kept[:, helpful].mean()),
        "power": float((statistic[:, helpful] > threshold).mean()),
        "helpful_retired": float((~kept[:, columns_of(world, "current", 0.05)]).mean()),
        "small_retired": float((~kept[:, columns_of(world, "current", 0.03)]).mean()),
        "harmful_kept": float(kept[:, columns_of(world, "current", -0.05)].mean()),
        "null_retired": float(null_now.mean()),
        "null_retired_in_two": float((null_now[:-1] | null_now[1:]).mean()),
        "regret": float(np.mean(record.regret)),
    }
    if record.shrunk:
        figures["rmse_shrunk"] = float(np.sqrt(np.mean((record.shrunk - world.effects) ** 2)))
    return figures


def mean_figures(found: list[dict[str, float]]) -> dict[str, float]:
    """Average over worlds; RMSE as the root of the mean square."""
    return {
        key: float(np.sqrt(np.mean([each[key] ** 2 for each in found])))
        if key.startswith("rmse")
        else float(np.mean([each[key] for each in found]))
        for key in found[0]
    }


def judged(published: Mapping[str, float], standard: Mapping[str, float]) -> dict[str, float]:
    """The figures that the bars are about."""
    return {
        "rmse_ratio": standard["rmse"] / published["rmse"],
        "rmse_shrunk_ratio": standard["rmse_shrunk"] / published["rmse"],
        "null_adopted": standard["null_adopted"],
        "power_ratio": standard["power"] / published["power"],
        "helpful_retired": standard["helpful_retired"],
        "null_retired_in_two": standard["null_retired_in_two"],
        "regret_ratio": standard["regret"] / published["regret"],
    }


BARS = {
    "rmse_ratio": ("at most", 0.55),
    "null_adopted": ("at most", 0.05),
    "power_ratio": ("at least", 1.5),
    "helpful_retired": ("at most", 0.02),
    "null_retired_in_two": ("at least", 0.70),
    "regret_ratio": ("at most", 0.5),
}


def table(rows: list[tuple[dict[str, float], dict[str, float]]]) -> str:
    """Mean figures of both profiles and the standard one's on each calibration."""
    published, standard = (mean_figures([row[side] for row in rows]) for side in (0, 1))
    lines = [
        "| figure | published | standard | R0 | R1 | R2 | R3 |",
        "|---|---|---|---|---|---|---|",
    ]
    for key, value in standard.items():
        worlds = " | ".join(f"{row[1][key]:.4f}" for row in rows)
        peer = f"{published[key]:.4f}" if key in published else ""
        lines.append(f"| {key} | {peer} | {value:.4f} | {worlds} |")
    return "\n".join(lines)


def verdicts(figures: Mapping[str, float]) -> str:
    """The bars, met or missed."""
    lines = ["| bar | value | wanted | met |", "|---|---|---|---|"]
    for key, (word, limit) in BARS.items():
        met = figures[key] <= limit if word == "at most" else figures[key] >= limit
        lines.append(f"| {key} | {figures[key]:.3f} | {word} {limit} | {'yes' if met else 'no'} |")
    return "\n".join(lines)


def main() -> int:
    """Simulate both worlds, print the tables, or with --json one object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gates", type=int, default=1000, help="simulated gates a calibration")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    worlds: dict[str, Callable[[float, float], World]] = {
        "additive": AdditiveWorld.calibrated,
        "logistic": LogisticWorld.calibrated,
    }
    figures: dict[str, dict[str, float]] = {}
    for name, calibrated in worlds.items():
        rows = []
        for number, (mean, sd) in enumerate(PUBLISHED):
            world = calibrated(mean, sd)
            published, standard = simulate(world, args.gates, args.seed + number)
            rows.append((figures_of(world, published), figures_of(world, standard)))
        means = [mean_figures([row[side] for row in rows]) for side in (0, 1)]
        figures[name] = judged(means[0], means[1])
        if not args.json:
            print(f"## {name} outcomes\n\n{table(rows)}\n\n{verdicts(figures[name])}\n")
    if args.json:
        entries = {
            key: {"value": value, "unit": "", "peer": "published profile", "ratio": None}
            for key, value in figures["additive"].items()
        }
        print(json.dumps({"figures": entries, **figures, **figures["additive"]}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
