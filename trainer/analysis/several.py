"""Several runs side by side: arms of equal settings over seeds, and pairs of runs task by task.

Runs whose settings differ in their seeds only are one arm; an arm has a mean and a spread over its
runs. Two arms are compared over the seeds that both have (paired t test), and two runs over the
tasks that both played (the published paired bootstrap, McNemar). p-values of one kind are adjusted
by Holm over all pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

from trainer.analysis.contrasts import contrast, on_shared_tasks
from trainer.analysis.material import Material
from trainer.analysis.schema_outcomes import CONDITIONS, Contrast
from trainer.analysis.schema_values import Interval
from trainer.analysis.several_schema import ArmRow, Comparison, RunPair, RunRow, SeedPair
from trainer.canonical import fingerprint
from trainer.compare.outcomes import Arm as Values
from trainer.compare.paired import holm
from trainer.compare.report import PRIMARY
from trainer.errors import InputError
from trainer.means import mean

SEEDS = ("seed", "mask_seed")
METRICS = ("success", "reward")


def compare_runs(materials: Sequence[Material]) -> Comparison:
    """The comparison. Raises InputError below two runs and for a name that stands twice."""
    names = [m.analysis.name for m in materials]
    if len(names) < 2 or len(set(names)) != len(names):
        raise InputError("needs two runs at least, each once", field="runs", value=names)
    settings = {m.analysis.name: _settings(m) for m in materials}
    labels = _labels(settings)
    runs = [_run(m, labels[m.analysis.name]) for m in materials]
    by_arm = {labels[name]: settings[name] for name in reversed(names)}
    return Comparison(
        runs=runs,
        arms=list(_arms(runs)),
        seed_pairs=_seed_pairs(runs),
        run_pairs=_run_pairs(materials),
        settings={arm: by_arm[arm] for arm in sorted(by_arm)},
        differing=_differing(by_arm),
    )


def _settings(material: Material) -> dict[str, Any]:
    """What an arm is: the flat settings without seeds, and where the run came from."""
    flat = dict(_flat(material.analysis.settings))
    return {"kind": material.analysis.kind, **{k: v for k, v in flat.items() if k not in SEEDS}}


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        if isinstance(item, Mapping):
            yield from _flat(item, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", item


def _labels(settings: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """Arm by run: A, B, … in order of first appearance."""
    order: dict[str, str] = {}
    found = {}
    for name, value in settings.items():
        key = fingerprint(value)
        found[name] = order.setdefault(key, _letter(len(order)))
    return found


def _letter(place: int) -> str:
    return chr(ord("A") + place) if place < 26 else f"A{place}"


def _differing(by_arm: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Setting → value by arm, where arms differ."""
    keys = sorted({key for value in by_arm.values() for key in value})
    found = {}
    for key in keys:
        values = {arm: by_arm[arm].get(key) for arm in sorted(by_arm)}
        if len({fingerprint(v) for v in values.values()}) > 1:
            found[key] = values
    return found


def _run(material: Material, arm: str) -> RunRow:
    found = material.analysis
    figures = {
        f"{test.split}/{each.condition}/{metric}": each.figures[metric]
        for test in found.tests
        for each in test.arms
        if each.condition
        for metric in METRICS
        if each.figures[metric].value is not None
    }
    return RunRow(
        name=found.name,
        arm=arm,
        seed=found.seed,
        rounds=len(found.rounds),
        final_chunks=len(found.banks[-1].chunks) if found.banks else None,
        figures=dict(sorted(figures.items())),
    )


def _arms(runs: Sequence[RunRow]) -> Iterator[ArmRow]:
    for arm in sorted({run.arm for run in runs}):
        members = [run for run in runs if run.arm == arm]
        for figure in sorted({key for run in members for key in run.figures}):
            held = [run for run in members if figure in run.figures]
            values = np.array([float(run.figures[figure].value or 0.0) for run in held])
            yield ArmRow(
                arm=arm,
                figure=figure,
                runs=[run.name for run in held],
                n=len(values),
                mean=mean(values),
                sd=float(values.std(ddof=1)) if len(values) > 1 else None,
                interval=t_interval(values) if len(values) > 1 else None,
                least=float(values.min()),
                most=float(values.max()),
            )


def t_interval(values: Any, level: float = 0.95) -> Interval:
    """The t interval of the mean of two or more values."""
    n = len(values)
    half = float(stats.t.ppf(0.5 + level / 2, n - 1)) * float(np.std(values, ddof=1)) / n**0.5
    return mean(values) - half, mean(values) + half


def _seed_pairs(runs: Sequence[RunRow]) -> list[SeedPair]:
    found = []
    for a, b in combinations(sorted({run.arm for run in runs}), 2):
        first, second = (
            {r.seed: r for r in runs if r.arm == arm and r.seed is not None} for arm in (a, b)
        )
        for figure in sorted({key for run in runs for key in run.figures}):
            seeds = sorted(
                seed for seed in first.keys() & second.keys()
                if figure in first[seed].figures and figure in second[seed].figures
            )  # fmt: skip
            if len(seeds) < 2:
                continue
            gaps = np.array([
                float(second[s].figures[figure].value or 0)
                - float(first[s].figures[figure].value or 0)
                for s in seeds
            ])  # fmt: skip
            found.append(_seed_pair(a, b, figure, [s for s in seeds if s is not None], gaps))
    adjusted = holm({str(i): pair.p for i, pair in enumerate(found)})
    return [p.model_copy(update={"p_holm": adjusted[str(i)]}) for i, p in enumerate(found)]


def _seed_pair(a: str, b: str, figure: str, seeds: list[int], gaps: Any) -> SeedPair:
    sd = float(gaps.std(ddof=1))
    centre = mean(gaps)
    if sd > 0:
        t = abs(centre) / (sd / len(gaps) ** 0.5)
        p = float(2 * stats.t.sf(t, len(gaps) - 1))
    else:
        p = 1.0 if centre == 0 else 0.0
    return SeedPair(
        a=a, b=b, figure=figure, seeds=seeds, n=len(gaps), difference=centre, sd=sd,
        interval=t_interval(gaps), p=p, p_holm=p,
    )  # fmt: skip


def _run_pairs(materials: Sequence[Material]) -> list[RunPair]:
    found: list[tuple[str, Contrast]] = []
    for a, b in combinations(materials, 2):
        for split in sorted(a.outcomes.keys() & b.outcomes.keys()):
            for condition in CONDITIONS:
                made = _pair(a, b, split, condition)
                if made is not None:
                    found.append((condition, made))
    raw = {
        f"{i}/{d.metric}": d.p
        for i, (_condition, each) in enumerate(found)
        for d in each.differences
        if d.p is not None
    }
    adjusted = holm(raw)
    return [
        RunPair(
            condition=condition,
            contrast=each,
            p_holm={
                d.metric: adjusted[f"{i}/{d.metric}"] for d in each.differences if d.p is not None
            },
        )
        for i, (condition, each) in enumerate(found)
    ]


def _pair(a: Material, b: Material, split: str, condition: str) -> Contrast | None:
    first, second = (m.outcomes[split].get(condition) for m in (a, b))
    if first is None or second is None:
        return None
    left, right = on_shared_tasks(_named(first, a), _named(second, b))
    if len(left.task_ids) < 2:
        return None
    name = f"{b.analysis.name} − {a.analysis.name}"
    return contrast(name, split, left, right, f"{a.analysis.name}; {b.analysis.name}")


def _named(arm: Values, material: Material) -> Values:
    values = {m: arm.values[m] for m in PRIMARY if m in arm.values}
    return Values(material.analysis.name, arm.task_ids, values)
