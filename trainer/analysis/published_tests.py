"""The published evaluations: four test conditions, recorded comparisons, the ranking appendix."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from trainer.analysis.contrasts import recorded, summary_figures, test_of
from trainer.analysis.reader import Reader
from trainer.analysis.schema_outcomes import Arm, Contrast, Test
from trainer.analysis.schema_values import Figure
from trainer.compare.outcomes import Arm as Values
from trainer.compare.outcomes import arms_of_file
from trainer.files import read_json

OUTCOMES = "artifacts/analysis/test_task_outcomes.json"
ARM = re.compile(r".*-test-(?P<checkpoint>base|iter(?P<step>\d+))-(?P<skill>free|s0|st)")
CONDITIONS = ("base_free", "base_s0", "iter80_free", "iter80_st")
CROSS = "cross_checkpoint_comparison.json"
RANKING = "artifacts/eval/ranking/ranking_test_comparison.json"


@dataclass(slots=True)
class Tests:
    """What was found of evaluations."""

    tests: list[Test] = field(default_factory=list)
    recorded: list[Contrast] = field(default_factory=list)
    ranking: list[Arm] = field(default_factory=list)
    ranking_contrasts: list[Contrast] = field(default_factory=list)
    facts: dict[str, Figure] = field(default_factory=dict)
    values: dict[str, Values] = field(default_factory=dict)


def published_tests(reader: Reader) -> Tests:
    """Arms from their summaries, differences from the task outcomes, the rest as recorded."""
    found = Tests()
    arms = _arms(reader)
    if reader.has(OUTCOMES):
        path = reader.note(OUTCOMES)
        known = [name for name in CONDITIONS if name in read_json(path)[0]]
        found.values = {_condition(each.name): each for each in arms_of_file(path, known)}
    if arms or found.values:
        found.tests.append(test_of("test", arms, found.values, OUTCOMES))
    for folder in sorted((reader.root / "artifacts" / "eval").glob("*")):
        name = f"artifacts/eval/{folder.name}/comparison.json"
        if ARM.fullmatch(folder.name) and (reader.root / name).is_file():
            found.recorded.append(
                recorded(folder.name, "test", reader.json(name)["paired"]["metrics"], name)
            )
        cross = f"artifacts/eval/{folder.name}/{CROSS}"
        if (reader.root / cross).is_file():
            for key, metrics in reader.json(cross).items():
                rows = {m: {**row, "ci95": row["ci"], "difference": row["diff"]}
                        for m, row in metrics.items()}  # fmt: skip
                found.recorded.append(recorded(key, "test", rows, cross))
    _ranking(reader, found)
    _audit(reader, found)
    return found


def _arms(reader: Reader) -> list[Arm]:
    arms = []
    for path in sorted((reader.root / "artifacts" / "eval").glob("*/summary.json")):
        match = ARM.fullmatch(path.parent.name)
        if match is None:
            continue
        name = path.relative_to(reader.root).as_posix()
        checkpoint, skill = match["checkpoint"], match["skill"]
        arms.append(
            Arm(
                name=f"{checkpoint}_{skill}",
                condition=_condition(f"{checkpoint}_{skill}"),
                split="test",
                step=int(match["step"] or 0),
                bank={"free": "", "s0": "S0", "st": "S_T"}[skill],
                figures=summary_figures(reader.json(name), name),
                source=name,
            )
        )
    order = [_condition(name) for name in CONDITIONS]
    return sorted(arms, key=lambda arm: order.index(arm.condition))


def _condition(name: str) -> str:
    checkpoint, _, skill = name.rpartition("_")
    return f"{'base' if checkpoint == 'base' else 'final'}_{skill}"


def _ranking(reader: Reader, found: Tests) -> None:
    document: Any = reader.json(RANKING)
    if document is None:
        return
    for name, arm in document["arms"].items():
        if "summary" in arm:
            found.ranking.append(
                Arm(
                    name=name, condition="", split="test", step=0,
                    bank=", ".join(arm["chunk_ids"]),
                    figures=summary_figures(arm["summary"], RANKING), source=RANKING,
                )
            )  # fmt: skip
    for name, entry in document["contrasts"].items():
        found.ranking_contrasts.append(recorded(name, "test", entry["metrics"], RANKING))
    for path in sorted((reader.root / "artifacts/eval/ranking").glob("*/comparison.json")):
        name = path.relative_to(reader.root).as_posix()
        metrics = reader.json(name)["paired"]["metrics"]
        label = f"{path.parent.name}_minus_bare"
        found.ranking_contrasts.append(recorded(label, "test", metrics, name))


def _audit(reader: Reader, found: Tests) -> None:
    """Attempts that the extraction counted: a failed one before a completed one is no episode."""
    name = "artifacts/analysis/local_extraction_audit.json"
    for arm, entry in (reader.json(name) or {}).items():
        counts = entry["attempt_status_counts"]
        found.facts[f"failed_attempts_{arm}"] = Figure(
            value=counts.get("failed", 0), n=sum(counts.values()), of="attempts", source=name
        )
