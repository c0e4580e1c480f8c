"""How long a standard gate takes to judge what was played.

    python -m benchmarks.gate_speed [--json]

``fit`` is the estimate of 8 outcomes with HC3 errors; ``refits`` adds 2,000 bootstrap refits and
the decision of each; ``judgement`` is everything that a gate writes: also 2,000 randomisation draws
and the check of all two-way terms. CPU seconds of one thread stand beside the wall clock, which
other processes disturb. The peer of ``fit`` is statsmodels, one OLS with HC3 for each outcome.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as ``python -m trainer`` does

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
if not __package__:  # started as a file
    sys.path.insert(0, str(ROOT))

from trainer.gate.planner import imagined_layout  # noqa: E402
from trainer.gate.slots import Layout  # noqa: E402
from trainer.gate.standard.analysis import analyse  # noqa: E402
from trainer.gate.standard.bootstrap import decision_frequency, resampled_effects  # noqa: E402
from trainer.gate.standard.decision import Roles, Thresholds  # noqa: E402
from trainer.gate.standard.design import base_array  # noqa: E402
from trainer.gate.standard.documents import inference_document  # noqa: E402
from trainer.gate.standard.estimate import Pairs  # noqa: E402
from trainer.gate.standard.settings import StandardSettings  # noqa: E402

SIZES = ((400, 16), (10_000, 64))
OUTCOMES = 8
SETTINGS = StandardSettings()
Seconds = tuple[float, float]  # wall clock and CPU


def made_pairs(layout: Layout, tasks: int) -> Pairs:
    """Pairs of the profile's design with successes that nothing explains."""
    rng = np.random.RandomState(1)
    base = base_array(layout.slots, tasks, rng)
    shown = np.zeros((tasks, 2, len(layout.columns)))
    place = {column: j for j, column in enumerate(layout.columns)}
    for s, slot in enumerate(layout.slots):
        for v, version in enumerate(slot.versions, 1):
            shown[:, :, place[version]] = base[:, s] == v
    parts = tuple(f"r_{m}" for m in range(OUTCOMES - 1))
    scores = (rng.rand(tasks, 2, OUTCOMES) < 0.6).astype(float)
    bare = (rng.rand(tasks, OUTCOMES) < 0.6).astype(float)
    return Pairs(tuple(range(tasks)), layout.columns, (*parts, "reward"), shown, scores, bare)


def timed(work: Callable[[], object]) -> Seconds:
    """Seconds of one run."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def measure(tasks: int, columns: int) -> dict[str, Seconds]:
    """The three figures and the peer's, for two rewrites of the first chunk, 3 additions."""
    layout = imagined_layout(columns - 5, [2], 3)
    pairs = made_pairs(layout, tasks)
    found = analyse(layout, pairs, SETTINGS)
    limits = Thresholds.of(SETTINGS, found.fit.degrees_of_freedom)

    def refits() -> None:
        analyse(layout, pairs, SETTINGS)
        drawn = resampled_effects(pairs.signs, found.adjusted_gains, resamples=2000, label="x")
        decision_frequency(drawn, found.covariance, Roles.of(layout), limits)

    def judgement() -> None:
        analyse(layout, pairs, SETTINGS)
        inference_document(layout, found, found.decisions.named(layout), SETTINGS, "x")

    def peer() -> None:
        from statsmodels.api import OLS

        for m in range(OUTCOMES):
            OLS(pairs.gains[:, m], pairs.signs).fit(cov_type="HC3")

    peer()  # its import is not its work
    return {
        "fit": timed(lambda: analyse(layout, pairs, SETTINGS)),
        "peer": timed(peer),
        "refits": timed(refits),
        "judgement": timed(judgement),
    }


def figures() -> dict[str, dict[str, Any]]:
    """All figures under the names of the table."""
    found: dict[str, dict[str, Any]] = {}
    for tasks, columns in SIZES:
        seconds = measure(tasks, columns)
        peer = seconds.pop("peer")[1]
        for kind, (wall, cpu) in seconds.items():
            compared = {"peer": peer, "ratio": peer / cpu} if kind == "fit" else {}
            for clock, value in (("wall", wall), ("cpu", cpu)):
                found[f"{kind}_{tasks}x{columns}_{clock}_s"] = {
                    "value": value,
                    "unit": "s",
                    "peer": None,
                    "ratio": None,
                    **(compared if clock == "cpu" else {}),
                }
    return found


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    found = figures()
    if args.json:
        print(json.dumps({"figures": found}))
        return 0
    for name, row in found.items():
        ratio = "" if row["ratio"] is None else f"   statsmodels {row['peer']:.3f}"
        print(f"{name:32s} {row['value']:8.3f}{ratio}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
