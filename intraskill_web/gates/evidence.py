"""What a gate's own files say beyond its rows: design, certainty of each effect, residuals.

Everything comes from ``contributions.json`` (and ``inference.json``) of the gate's folder and is
kept until they change. An imported gate without its observations has no evidence, and pages say so.
P(beta > 0) and the shrunk effect are those of empirical Bayes; the selection frequency is the share
of 1,000 resamples of the tasks in which the recorded rule would have kept the column
(specification: gate-analysis.md §16).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from intraskill_web.gates import design
from intraskill_web.gates.models import GateRun
from trainer.errors import InputError
from trainer.files import read_json, write_json
from trainer.gate.refit import (
    FinishedGate,
    fit_published,
    fit_standard,
    load_finished,
    pairs,
    scores,
)
from trainer.gate.regression import Array, Fit
from trainer.gate.selection import select
from trainer.gate.standard.bootstrap import resampled_effects
from trainer.gate.standard.shrinkage import shrink

RESAMPLES = 1000
KEPT_DECISIONS = ("adopt", "keep", "hold")


@dataclass(frozen=True, slots=True)
class Column:
    """How sure one effect is. ``outcomes`` gives (coefficient, low, high) of every component."""

    p_positive: float
    shrunk: float
    frequency: float | None
    outcomes: Mapping[str, tuple[float, float, float]]


@dataclass(frozen=True, slots=True)
class Observation:
    """One task of the fit. ``shown`` are the versions its masked rollouts showed."""

    task_id: int
    shown: frozenset[str]
    difference: float
    fitted: float

    @property
    def residual(self) -> float:
        """What the fit does not explain."""
        return self.difference - self.fitted


@dataclass(frozen=True, slots=True)
class Evidence:
    """All of it, for one gate."""

    gate: FinishedGate
    columns: Mapping[str, Column]
    observations: list[Observation]
    design: Mapping[str, Any]
    refit_error: float
    stamp: tuple[str, int, int]  # the file it was read from


def evidence_of(run: GateRun) -> Evidence | None:
    """The evidence of a gate; None where its files are absent or cannot be read."""
    folder = run.round.experiment.folder / run.path
    file = folder / "contributions.json"
    try:
        state = file.stat()
        return _evidence(folder, _kept_file(run), state.st_mtime_ns, state.st_size)
    except (OSError, InputError):
        return None


def _kept_file(run: GateRun) -> Path:
    name = f"round-{run.round.number:03d}-{run.profile}-frequency.json"
    return run.round.experiment.folder / "derived" / name


@lru_cache(maxsize=8)
def _evidence(folder: Path, kept: Path, mtime: int, size: int) -> Evidence:
    gate = load_finished(folder)
    fit = fit_published(gate) if gate.profile == "published" else fit_standard(gate)
    at, names = len(gate.outcomes) - 1, gate.layout.columns
    shrunk = shrink(fit.beta[:, at], fit.standard_error[:, at])
    low, high = fit.interval()
    frequency = _frequency(gate, kept, [mtime, size, RESAMPLES])
    columns = {
        name: Column(
            p_positive=float(shrunk.positive[j]),
            shrunk=float(shrunk.mean[j]),
            frequency=frequency.get(name),
            outcomes={
                outcome: (float(fit.beta[j, m]), float(low[j, m]), float(high[j, m]))
                for m, outcome in enumerate(gate.outcomes)
            },
        )
        for j, name in enumerate(names)
    }
    masks = np.array([row["mask"] for row in gate.rows], dtype=np.float64)
    facts = design.facts(masks, names, gate.layout.slots)
    if gate.profile == "standard":
        facts["condition_number"] = float(np.linalg.cond(pairs(gate).signs))
    stored = np.array([gate.stored[name] for name in names])
    return Evidence(
        gate=gate,
        columns=columns,
        observations=_observations(gate, fit),
        design=facts,
        refit_error=float(np.max(np.abs(fit.beta[:, at] - stored))),
        stamp=(str(folder), mtime, size),
    )


def _frequency(gate: FinishedGate, kept: Path, stamp: list[int]) -> dict[str, float]:
    """Share of resamples that keep each column: as stored by a standard gate, else drawn once.

    Drawing takes a second for 16 columns and many for 64, so it is kept in the file ``kept``.
    """
    if gate.profile == "standard":
        rows = read_json(gate.folder / "inference.json")["rows"]
        return {
            row["intervention_id"]: sum(row["decision_frequency"].get(k, 0) for k in KEPT_DECISIONS)
            for row in rows
            if "decision_frequency" in row
        }
    try:
        stored = read_json(kept)
        if stored["of"] == stamp:
            return dict(stored["frequency"])
    except (InputError, KeyError):
        pass
    frequency = _drawn_frequency(gate)
    with suppress(OSError):  # a folder that only others may write to
        write_json(kept, {"of": stamp, "frequency": frequency})
    return frequency


def _drawn_frequency(gate: FinishedGate) -> dict[str, float]:
    masks, gains = _published_data(gate)
    drawn = resampled_effects(masks, gains, resamples=RESAMPLES, label=str(gate.folder.name))
    kept = dict.fromkeys(gate.layout.columns, 0)
    for beta in drawn.tolist():
        chosen = select(gate.layout, dict(zip(gate.layout.columns, beta, strict=True)), gate.budget)
        for name in chosen.selected:
            kept[name] += 1
    return {name: count / RESAMPLES for name, count in kept.items()}


def _published_data(gate: FinishedGate) -> tuple[Array, Array]:
    rows = _used(gate)
    masks = np.array([row["mask"] for row in rows], dtype=np.float64)
    return masks, (scores(gate, rows) - scores(gate, rows, bare=True))[:, -1]


def _used(gate: FinishedGate) -> list[Mapping[str, Any]]:
    return [row for row in gate.rows if row["sample_id"] == 0 and row["bare_reward"] is not None]


def _observations(gate: FinishedGate, fit: Fit) -> list[Observation]:
    """One a task: masked minus bare, or for a standard gate first minus second rollout."""
    names = gate.layout.columns
    if gate.profile == "published":
        rows = _used(gate)
        differences = (scores(gate, rows) - scores(gate, rows, bare=True))[:, -1]
        masks = [row["mask"] for row in rows]
        tasks = [row["task_id"] for row in rows]
    else:
        both = pairs(gate)
        differences = both.scores[:, 0, -1] - both.scores[:, 1, -1]
        masks = both.shown.max(axis=1).tolist()
        tasks = list(both.task_ids)
    return [
        Observation(
            task_id=task,
            shown=frozenset(n for n, m in zip(names, mask, strict=True) if m),
            difference=float(difference),
            fitted=float(difference - residual),
        )
        for task, mask, difference, residual in zip(
            tasks, masks, differences, fit.residuals[:, -1], strict=True
        )
    ]
