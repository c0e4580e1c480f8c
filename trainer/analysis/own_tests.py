"""Evaluations of our own runs: arms, their differences, and the conditions they were played under.

A round evaluates its checkpoint on validation; the last round also on the test split; an evaluation
order (``orders/<name>/<condition>``) may add any condition of the test.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainer.analysis.cohorts import Population
from trainer.analysis.contrasts import summary_figures, test_of
from trainer.analysis.own_traces import Traces, named, population
from trainer.analysis.reader import Reader
from trainer.analysis.schema_outcomes import CONDITIONS, Arm, Test
from trainer.analysis.schema_rounds import Bank
from trainer.compare.outcomes import Arm as Values

# What of an evaluation's plan says how it was played; the rest may name places.
NAMED = {
    "environment": (
        "profile", "environment_version", "observation_version", "tool_version", "search_version",
        "reward_version", "variant_price_version", "budget_parser_version", "type_terms",
        "primary_reward", "page_size", "top_k", "max_actions", "catalogue_sha256",
        "product_count", "task_count",
    ),
    "prompt": ("prompt_version", "vocabulary_sha256", "system_prompt_sha256"),
    "runtime": ("max_steps", "action_protocol"),
}  # fmt: skip


def evaluation_folders(reader: Reader) -> list[str]:
    """Every finished evaluation of the run, as its folder below the root."""
    patterns = ("round-*/baseline/*", "round-*/validate/*", "round-*/test/*", "orders/*/*")
    return [
        path.parent.relative_to(reader.root).as_posix()
        for pattern in patterns
        for path in sorted(reader.root.glob(f"{pattern}/summary.json"))
    ]


class Evaluations:
    """All evaluations of a run, read once each."""

    def __init__(self, reader: Reader, banks: Sequence[Bank], steps: int, traces: Traces) -> None:
        self.reader = reader
        self.traces = traces
        self.banks = {bank.bank_sha256: bank.label for bank in banks}
        self.steps = steps
        self.arms: dict[str, list[Arm]] = {"val": [], "test": []}
        self.values: dict[str, dict[str, Values]] = {"val": {}, "test": {}}
        self.conditions: dict[str, Any] = {}
        self.first = self.last = ""
        self._populations: list[Population] = []

    def add_round(self, number: int, folder: str) -> None:
        """The evaluations of one round; later rounds replace the final conditions."""
        step = (number + 1) * self.steps
        if number == 0:
            self._add(
                f"{folder}/baseline/bare", "val_base", "base_free", split="val", step=0, number=None
            )
            self._add(
                f"{folder}/baseline/full",
                "val_base_s0",
                "base_s0",
                split="val",
                step=0,
                number=None,
            )
        self._add(
            f"{folder}/validate/bare",
            f"val_{step}",
            "final_free",
            split="val",
            step=step,
            number=number,
        )
        self._add(
            f"{folder}/validate/full",
            f"val_{step}_full",
            "final_st",
            split="val",
            step=step,
            number=number,
        )
        self._add(
            f"{folder}/test/bare",
            f"test_{step}",
            "final_free",
            split="test",
            step=step,
            number=number,
        )
        self._add(
            f"{folder}/test/full",
            f"test_{step}_full",
            "final_st",
            split="test",
            step=step,
            number=number,
        )

    def populations(self) -> list[Population]:
        """The behaviour of every evaluation, in order."""
        return list(self._populations)

    def add_orders(self) -> None:
        """What evaluation orders played; a condition that was ordered replaces the round's own."""
        root = self.reader.root / "orders"
        for path in sorted(root.glob("*/*/summary.json")):
            arm = path.parent.name
            record = self.reader.json(path.parent.parent.relative_to(self.reader.root).as_posix()
                                      + "/order.json")  # fmt: skip
            played = next((a for a in (record or {}).get("arms", []) if a["name"] == arm), None)
            if played is None:
                continue
            folder = path.parent.relative_to(self.reader.root).as_posix()
            name = f"{path.parent.parent.name}/{arm}"
            condition = arm if arm in CONDITIONS else ""
            self._add(
                folder, name, condition, split=played["split"], step=played.get("step"), number=None
            )

    def _add(
        self, folder: str, name: str, condition: str, *, split: str, step: int | None,
        number: int | None,
    ) -> None:  # fmt: skip
        if not (self.reader.root / folder / "summary.json").is_file():
            return
        played = self.traces.evaluations.get(folder)
        summary = self.reader.json(f"{folder}/summary.json")
        manifest = self.reader.json(f"{folder}/manifest.json")
        plan = manifest["plan"]
        self._note_conditions(plan)
        arms = self.arms.setdefault(split, [])
        final = condition.startswith("final")
        if final:  # only the newest checkpoint is final
            arms[:] = [
                a if a.condition != condition else a.model_copy(update={"condition": ""})
                for a in arms
            ]
        arms.append(
            Arm(
                name=name,
                condition=condition,
                split=split,
                step=step,
                bank=self.banks.get(str((plan.get("skills") or {}).get("bank_sha256")), ""),
                figures=summary_figures(summary, f"{folder}/summary.json"),
                source=f"{folder}/summary.json",
            )
        )
        if played is None or played.values is None:
            return
        self._populations.append(population(name, split, number, folder, played))
        if condition:
            self.values.setdefault(split, {})[condition] = named(played.values, name)
        if split == "val" and condition.endswith("free"):
            self.first = self.first or name
            self.last = name

    def _note_conditions(self, plan: dict[str, Any]) -> None:
        for section, keys in NAMED.items():
            if section not in self.conditions and isinstance(plan.get(section), dict):
                self.conditions[section] = {k: plan[section][k] for k in keys if k in plan[section]}


def own_tests(found: Evaluations) -> list[Test]:
    """A test for each split that has arms, the test split first."""
    tests = []
    for split in ("test", "val"):
        arms = found.arms.get(split, [])
        if arms:
            source = "; ".join(sorted({arm.source for arm in arms if arm.condition}))
            tests.append(test_of(split, arms, found.values.get(split, {}), source))
    return tests
