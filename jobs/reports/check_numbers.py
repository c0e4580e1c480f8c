"""The numbers of an export, computed again from the data it ships."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from jobs.reports.check_pages import Page, parsed
from trainer.analysis import Analysis
from trainer.analysis.contrasts import CONTRASTS, contrast, on_shared_tasks
from trainer.analysis.several_schema import Comparison
from trainer.compare.outcomes import Arm
from trainer.errors import InputError
from trainer.files import read_json
from trainer.gate.refit import load_finished, refit

DOCUMENT = "data/analysis.json"
COMPARISON = "data/comparison.json"
TOLERANCE = 1e-9
Problem = dict[str, str]


def number_problems(folder: Path) -> tuple[list[Problem], dict[str, Any]]:
    """Problems, and how much was computed again."""
    if (folder / COMPARISON).is_file():
        return _comparison(folder)
    try:
        found = Analysis.model_validate(read_json(folder / DOCUMENT))
    except (InputError, ValidationError) as error:
        return [{"file": DOCUMENT, "problem": f"is no analysis: {str(error)[:200]}"}], {}
    counted = {"gates_refitted": 0, "coefficients": 0, "contrasts": 0, "printed": 0}
    problems = [*_gates(folder, found, counted), *_tests(folder, found, counted)]
    problems += _printed(folder, found, counted)
    return problems, counted


def _comparison(folder: Path) -> tuple[list[Problem], dict[str, Any]]:
    """A comparison of runs: its pairs from the task outcomes beside it."""
    try:
        found = Comparison.model_validate(read_json(folder / COMPARISON))
    except (InputError, ValidationError) as error:
        return [{"file": COMPARISON, "problem": f"is no comparison: {str(error)[:200]}"}], {}
    rows: dict[tuple[str, str, str], list[dict[str, str]]] = {}
    with (folder / "data" / "outcomes.csv").open(encoding="utf-8", newline="") as handle:
        for row in csv.DictReader(handle):
            key = (row.pop("run"), row.pop("split"), row.pop("condition"))
            rows.setdefault(key, []).append(row)
    problems: list[Problem] = []
    for pair in found.run_pairs:
        stated = pair.contrast
        arms = [
            _arm(name, rows.get((name, stated.split, pair.condition), []))
            for name in (stated.a, stated.b)
        ]
        again = contrast(stated.name, stated.split, *on_shared_tasks(*arms), "")
        problems += [{**p, "file": COMPARISON} for p in _same(stated, again)]
    return problems, {"contrasts": len(found.run_pairs)}


def _gates(folder: Path, found: Analysis, counted: dict[str, Any]) -> Iterator[Problem]:
    for path in sorted((folder / "data" / "gates").glob("round-*/contributions.json")):
        name = path.relative_to(folder).as_posix()
        number = int(path.parent.name[-3:])
        try:
            again = refit(load_finished(path.parent))
        except InputError as error:
            yield {"file": name, "problem": f"cannot be fitted again: {error}"}
            continue
        counted["gates_refitted"] += 1
        fitted = {row["intervention_id"]: row["coefficient"] for row in again["contributions"]}
        stated = {c.intervention_id: c.coefficient for c in found.coefficients if c.round == number}
        if fitted.keys() != stated.keys():
            yield {"file": name, "problem": "holds other texts than the document"}
            continue
        for key, value in stated.items():
            counted["coefficients"] += 1
            if abs(fitted[key] - value) > TOLERANCE:
                yield {
                    "file": DOCUMENT,
                    "problem": f"round {number}, {key}: stated {value!r}, fitted {fitted[key]!r}",
                }


def _tests(folder: Path, found: Analysis, counted: dict[str, Any]) -> Iterator[Problem]:
    for test in found.tests:
        path = folder / "data" / f"outcomes_{test.split}.csv"
        if not path.is_file():
            if test.contrasts:
                yield {"file": f"data/{path.name}", "problem": "is missing"}
            continue
        arms = _arms(path)
        for stated in test.contrasts:
            a, b = CONTRASTS[stated.name]
            if a not in arms or b not in arms:
                yield {"file": f"data/{path.name}", "problem": f"lacks {a} or {b}"}
                continue
            again = contrast(stated.name, test.split, *on_shared_tasks(arms[a], arms[b]), "")
            yield from _same(stated, again)
            counted["contrasts"] += 1


def _same(stated: Any, again: Any) -> Iterator[Problem]:
    fitted = {d.metric: d for d in again.differences}
    for difference in stated.differences:
        other = fitted.get(difference.metric)
        pairs = [] if other is None else [
            (difference.difference, other.difference),
            *zip(difference.interval or (), other.interval or (), strict=True),
        ]  # fmt: skip
        if not pairs or any(abs(x - y) > TOLERANCE * max(1.0, abs(x)) for x, y in pairs):
            yield {
                "file": DOCUMENT,
                "problem": f"{stated.name}, {difference.metric}: not what its outcomes give",
            }
    if stated.transitions != again.transitions:
        yield {"file": DOCUMENT, "problem": f"{stated.name}: other transitions than its outcomes"}


def _arms(path: Path) -> dict[str, Arm]:
    """Task values by condition."""
    rows: dict[str, list[dict[str, str]]] = {}
    with path.open(encoding="utf-8", newline="") as handle:
        for row in csv.DictReader(handle):
            rows.setdefault(row.pop("condition"), []).append(row)
    return {condition: _arm(condition, listed) for condition, listed in rows.items()}


def _arm(name: str, listed: list[dict[str, str]]) -> Arm:
    """The arm of rows of one condition. Raises InputError without any."""
    if not listed:
        raise InputError("its outcomes are not in the export", field=name)
    return Arm(
        name,
        tuple(int(row["task_id"]) for row in listed),
        {
            metric: np.array([float(row[metric]) for row in listed])
            for metric in listed[0]
            if metric != "task_id" and all(row[metric] != "" for row in listed)
        },
    )


def _printed(folder: Path, found: Analysis, counted: dict[str, Any]) -> Iterator[Problem]:
    """The headline of every condition stands on the pages as the document has it."""
    path = folder / "results.html"
    if not path.is_file() or not found.tests:
        return
    text = _words(parsed(path))
    for test in found.tests:
        for arm in test.arms:
            value = arm.figures["reward"].value
            if arm.condition and value is not None:
                counted["printed"] += 1
                if f"{value:.3f}" not in text:
                    yield {
                        "file": "results.html",
                        "problem": f"does not print the reward of {arm.name}, {value:.3f}",
                    }


def _words(page: Page) -> str:
    return " ".join(page.text)
