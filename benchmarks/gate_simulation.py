"""Worlds with known effects for judging gates, calibrated to the published validation runs.

Both worlds reproduce the published mean and SD of the bare outcome and the published SD of a task's
masked minus bare difference, and plant the same average effects and one interaction.

* ``AdditiveWorld``: an outcome is the task's level plus the effects of the shown chunks plus luck.
* ``LogisticWorld``: an outcome is a success whose log-odds the chunks shift. Most tasks are then
  nearly always or nearly never solved, and an average effect of 0.05 comes from a few tasks that
  change a lot. This is harder for any gate that shows much in one rollout and little in the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from trainer.gate.pool import Candidate, CandidatePool
from trainer.gate.slots import Layout, build_layout
from trainer.skills.types import Chunk

Array = NDArray[np.float64]

# Mean bare reward and SD of the task difference of the published gates R0-R3.
PUBLISHED = ((0.766, 0.373), (0.813, 0.307), (0.860, 0.286), (0.869, 0.290))
CURRENT = (0.10, 0.05, 0.03, 0.0, 0.0, 0.0, -0.03, -0.05, -0.05, 0.03)
REWRITE_OF = 9  # one rewrite, as good as the text it would replace: a useless candidate
REWRITE = 0.03
ADDITIONS = (0.05, 0.0, 0.0, 0.0, -0.05)
TOGETHER = (0, 1)  # the two most useful chunks do partly the same
ADDITIVE_INTERACTION = -0.03
LOGIT_INTERACTION = -0.5
POPULATION = 20_000  # tasks that stand for all tasks


class World(Protocol):
    """Tasks whose outcomes depend on shown chunks in a known way."""

    @property
    def layout(self) -> Layout:
        """Slots and columns."""
        ...

    @property
    def effects(self) -> Array:
        """Average effect of each column."""
        ...

    def tasks(self, n: int, rng: np.random.Generator) -> Array:
        """n new tasks."""
        ...

    def play(self, tasks: Array, shown: Array, rng: np.random.Generator) -> Array:
        """An outcome for each task (n,) under masks (n, k)."""
        ...

    def value(self, bank: Sequence[str]) -> float:
        """Expected outcome with these versions in every prompt."""
        ...


def planted() -> tuple[Layout, Array]:
    """Slots of the planted gate and the effect of each column."""
    current = tuple(Chunk(f"c{i:02d}", f"text {i}") for i in range(len(CURRENT)))
    target = current[REWRITE_OF].skill_id
    candidates = [Candidate("r00", "REWRITE", target, "rewrite")]
    candidates += [Candidate(f"x{i:02d}", "ADD", None, f"new {i}") for i in range(len(ADDITIONS))]
    layout = build_layout(CandidatePool("round-000", "c", "0", current, tuple(candidates), "0"))
    effect = {f"c{i:02d}": value for i, value in enumerate(CURRENT)} | {"r00": REWRITE}
    effect |= {f"x{i:02d}": value for i, value in enumerate(ADDITIONS)}
    return layout, np.array([effect[column] for column in layout.columns])


def random_masks(layout: Layout, n: int, rng: np.random.Generator) -> Array:
    """Published masks (n, k): every slot in one of its states, uniformly."""
    index = {column: position for position, column in enumerate(layout.columns)}
    shown = np.zeros((n, len(index)))
    for slot in layout.slots:
        state = rng.integers(0, len(slot.states), size=n)
        for v, version in enumerate(slot.versions, 1):
            shown[:, index[version]] = state == v
    return shown


def best_bank(world: World) -> float:
    """Value of the best bank; useless and harmful versions can be left out of the search."""
    columns = world.layout.columns
    banks: list[list[str]] = [[]]
    for slot in world.layout.slots:
        good = [v for v in slot.versions if world.effects[columns.index(v)] > 0]
        banks = [bank + extra for bank in banks for extra in ([], *([v] for v in good))]
    return max(world.value(bank) for bank in banks)


def _as_mask(layout: Layout, bank: Sequence[str]) -> Array:
    return np.array([[float(column in bank) for column in layout.columns]])


@dataclass(frozen=True)
class AdditiveWorld:
    """Level + effects + interaction + luck; ``luck`` is the SD of one rollout of one task."""

    layout: Layout
    effects: Array
    mean: float
    spread: float
    luck: float

    @classmethod
    def calibrated(cls, mean: float, sd: float) -> AdditiveWorld:
        """Bare outcomes have the spread of a 0/1 outcome of this mean."""
        layout, effects = planted()
        luck = sd / np.sqrt(2)
        return cls(layout, effects, mean, float(np.sqrt(mean * (1 - mean) - luck**2)), float(luck))

    def tasks(self, n: int, rng: np.random.Generator) -> Array:
        return self.mean + self.spread * rng.normal(size=n)

    def play(self, tasks: Array, shown: Array, rng: np.random.Generator) -> Array:
        return np.asarray(tasks + self._gain(shown) + self.luck * rng.normal(size=len(tasks)))

    def value(self, bank: Sequence[str]) -> float:
        return float(self.mean + self._gain(_as_mask(self.layout, bank))[0])

    def _gain(self, shown: Array) -> Array:
        a, b = TOGETHER
        main = self.effects.copy()
        main[[a, b]] -= ADDITIVE_INTERACTION / 2  # so that average effects are the planted ones
        return np.asarray(shown @ main + ADDITIVE_INTERACTION * shown[:, a] * shown[:, b])


def logistic(x: Array) -> Array:
    """1 / (1 + exp(-x))."""
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


@dataclass(frozen=True)
class LogisticWorld:
    """Ability ~ N(mu, tau^2) on the logit scale, shifted by theta' c and one interaction."""

    layout: Layout
    effects: Array
    mu: float
    tau: float
    theta: Array

    @classmethod
    def calibrated(cls, mean: float, sd: float) -> LogisticWorld:
        """Effects add to the spread of the difference, so the luck is narrowed until it fits."""
        narrowed = sd
        for _ in range(4):
            world = _plant_logistic(mean, narrowed)
            narrowed *= sd / world.difference_sd()
        return world

    def tasks(self, n: int, rng: np.random.Generator) -> Array:
        return np.asarray(self.mu + self.tau * rng.normal(size=n))

    def play(self, tasks: Array, shown: Array, rng: np.random.Generator) -> Array:
        p = logistic(tasks + _log_odds(shown, self.theta))
        return np.asarray(rng.random(len(tasks)) < p, dtype=np.float64)

    def value(self, bank: Sequence[str]) -> float:
        tasks = self.tasks(POPULATION, np.random.default_rng(7))
        return float(logistic(tasks + _log_odds(_as_mask(self.layout, bank), self.theta)).mean())

    def difference_sd(self) -> float:
        """SD of a masked minus a bare outcome of the same task."""
        rng = np.random.default_rng(11)
        tasks = self.tasks(POPULATION, rng)
        shown = random_masks(self.layout, POPULATION, rng)
        p = logistic(tasks + _log_odds(shown, self.theta))
        q = logistic(tasks)
        return float(np.sqrt(np.mean(p * (1 - p) + q * (1 - q)) + np.var(p - q)))


def _log_odds(shown: Array, theta: Array) -> Array:
    a, b = TOGETHER
    return np.asarray(shown @ theta + LOGIT_INTERACTION * shown[:, a] * shown[:, b])


def _plant_logistic(mean: float, sd: float) -> LogisticWorld:
    layout, effects = planted()
    mu, tau = _ability(mean, sd)
    rng = np.random.default_rng(20260901)
    tasks = mu + tau * rng.normal(size=POPULATION)
    shown = random_masks(layout, POPULATION, rng)
    theta = np.zeros(len(effects))
    for _ in range(60):  # Newton steps, one coordinate each
        found, slope = _average_effects(layout, tasks, shown, theta)
        step = np.clip((effects - found) / slope, -1.0, 1.0)
        theta = np.where(effects == 0.0, 0.0, theta + step)
        if np.abs(effects - found)[effects != 0.0].max() < 1e-6:
            return LogisticWorld(layout, effects, mu, tau, theta)
    raise RuntimeError("the planted effects do not fit under this ceiling")


def _ability(mean: float, sd: float) -> tuple[float, float]:
    """mu and tau that give this bare mean and this SD of the difference of two bare rollouts."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(201)
    weights = weights / weights.sum()

    def centre(tau: float) -> float:
        return float(brentq(lambda mu: weights @ logistic(mu + tau * nodes) - mean, -60.0, 60.0))

    def excess(tau: float) -> float:
        p = logistic(centre(tau) + tau * nodes)
        return float(2 * weights @ (p * (1 - p)) - sd**2)

    tau = float(brentq(excess, 0.1, 12.0))
    return centre(tau), tau


def _average_effects(
    layout: Layout, tasks: Array, shown: Array, theta: Array
) -> tuple[Array, Array]:
    """Effect of each column averaged over tasks and masks, and its derivative by its theta."""
    index = {column: position for position, column in enumerate(layout.columns)}
    effect, slope = np.zeros(len(index)), np.zeros(len(index))
    for column, j in index.items():
        without = shown.copy()
        without[:, [index[v] for v in layout.slot_of(column).versions]] = 0.0
        with_it = without.copy()
        with_it[:, j] = 1.0
        p = logistic(tasks + _log_odds(with_it, theta))
        q = logistic(tasks + _log_odds(without, theta))
        effect[j], slope[j] = (p - q).mean(), (p * (1 - p)).mean()
    return effect, slope
