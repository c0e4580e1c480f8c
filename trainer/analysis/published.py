"""A published folder → the document: every figure that its files give, none that they do not.

``artifacts/cold-start``, ``artifacts/round-NNN``, ``artifacts/analysis`` and ``artifacts/eval``;
any subset is a valid folder. Specification: published-figures.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from trainer.analysis import optimiser
from trainer.analysis.banks import (
    bank_of,
    candidates_of,
    curriculum_of,
    derived_curriculum,
    named_bank,
    titles,
)
from trainer.analysis.gates import fitted, tabled
from trainer.analysis.material import Material
from trainer.analysis.published_facts import cases_on_record, facts_of, settings_of
from trainer.analysis.published_tests import published_tests
from trainer.analysis.reader import Reader
from trainer.analysis.schema import SCHEMA, Analysis
from trainer.analysis.schema_rounds import Bank, Candidate, Coefficient, Gate, Round
from trainer.analysis.schema_values import Figure, Table

Json = Mapping[str, Any]
ANALYSIS = "artifacts/analysis"
TABLE = f"{ANALYSIS}/chunk_contributions.csv"
TOTALS = f"{ANALYSIS}/rounds.csv"
# figure → column of rounds.csv, what it counts in
FUNNEL = {
    "generated_groups": ("group_count", "groups"),
    "generated_episodes": ("generated_episodes", "episodes"),
    "trainer_episodes": ("trainer_episodes", "episodes"),
    "all_wrong_groups": ("all_wrong_groups", "groups"),
    "analysed_cards": ("analyzed_cards", "cards"),
    "eligible_cards": ("eligible_cards", "cards"),
    "candidates": ("candidate_count", "candidates"),
}


def analyse(reader: Reader, name: str) -> Material:
    """The document of a published folder. Raises InputError for a damaged file."""
    found = _Published(reader)
    for number in found.numbers:
        found.add_round(number)
    tests = published_tests(reader)
    steps = reader.table(f"{ANALYSIS}/training_steps.csv")
    updates = optimiser.updates_table(_updates(reader), f"{ANALYSIS}/wandb/optimizer_updates.csv")
    analysis = Analysis(
        schema_version=SCHEMA,
        name=name,
        kind="published",
        seed=None,
        rounds=found.rounds,
        gates=found.gates,
        coefficients=found.coefficients,
        banks=found.banks,
        candidates=found.candidates,
        tests=tests.tests,
        recorded=tests.recorded,
        ranking=tests.ranking,
        ranking_contrasts=tests.ranking_contrasts,
        training=_table(steps, f"{ANALYSIS}/training_steps.csv"),
        updates=updates,
        update_summaries=optimiser.summaries(updates),
        cohorts=[],
        pairs=[],
        cases=cases_on_record(reader),
        facts=facts_of(reader) | tests.facts,
        settings=settings_of(reader),
        sources=dict(sorted(reader.sources.items())),
        missing=[*reader.missing, "episode traces (not published)"],
    )
    return Material(analysis, {"test": tests.values})


class _Published:
    """The rounds read so far."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.totals = {int(row["round"]): row for row in reader.table(TOTALS)}
        self.stated = {
            int(r["round"]): r
            for r in (_optional(reader, "analysis.json") or {"rounds": []})["rounds"]
        }
        self.groups = _optional_table(reader, "training_groups.csv")
        self.rows: dict[int, list[dict[str, str]]] = {}
        for row in reader.table(TABLE):
            self.rows.setdefault(int(row["round"]), []).append(row)
        self.numbers = sorted(self.totals.keys() | self.rows.keys() | _folders(reader))
        self.rounds: list[Round] = []
        self.gates: list[Gate] = []
        self.coefficients: list[Coefficient] = []
        self.candidates: list[Candidate] = []
        self.banks: list[Bank] = []
        self._bank(0, None, [])

    def add_round(self, number: int) -> None:
        folder = f"artifacts/round-{number:03d}"
        pool = f"{folder}/analysis/candidate_pool.json"
        step = int(self.totals[number]["step"]) if number in self.totals else None
        gate, rows = self._gate(number, f"{folder}/gate", pool)
        where = "artifacts/cold-start" if number == 0 else folder
        q, state_id, rho = curriculum_of(self.reader, f"{where}/curriculum.json")
        if not state_id and number:
            q, state_id, rho = derived_curriculum(self.reader, number)
        candidates = candidates_of(self.reader, number, pool, rows)
        if number == 0 and self.banks:
            self.banks[0] = _with_rho(self.banks[0], rho)
        elif len(self.banks) > number:
            self.banks[number] = _with_rho(self.banks[number], rho)
        self._bank(number + 1, step, rows)
        totals = self.totals.get(number, {})
        self.rounds.append(
            Round(
                round=number,
                step=step or 0,
                q=float(totals["q"]) if totals.get("q") else q,
                state_id=state_id,
                rho=rho,
                input_chunks=_int(totals.get("input_chunks")),
                selected_chunks=_int(totals.get("selected_chunks")),
                funnel=self._funnel(number, totals, folder, candidates),
                source=TOTALS,
            )
        )
        self.candidates += candidates
        self.coefficients += rows
        if gate is not None:
            self.gates.append(gate)

    def _gate(self, number: int, folder: str, pool: str) -> tuple[Gate | None, list[Coefficient]]:
        known = titles(self.reader, pool)
        if self.reader.has(f"{folder}/contributions.json"):
            return fitted(self.reader, number, folder, known)
        delta = (self.stated.get(number) or {}).get("gate_delta") or {}
        error = (self.totals.get(number) or {}).get("gate_refit_max_error")
        stated = {
            "refit_max_error": float(error) if error else None,
            "delta_interval": tuple(delta["ci95"]) if delta.get("ci95") else None,
        }
        manifest = f"{folder}/online_gate_manifest.json"
        return tabled(
            self.reader,
            number,
            self.rows.get(number, []),
            names=(TABLE, pool, manifest),
            titles=known,
            stated=stated,
        )

    def _bank(self, number: int, step: int | None, rows: Sequence[Coefficient]) -> None:
        name = (
            "artifacts/cold-start/selected_skillbank.json"
            if number == 0
            else f"artifacts/round-{number - 1:03d}/gate/selected_skillbank.json"
        )
        if self.reader.has(name):
            self.banks.append(bank_of(self.reader, name, number, step, {}))
        elif (named := named_bank(number, step, rows, self.banks)) is not None:
            self.banks.append(named)

    def _funnel(
        self, number: int, totals: Json, folder: str, candidates: Sequence[Candidate]
    ) -> dict[str, Figure]:
        found = {
            key: Figure(value=int(totals[column]), n=int(totals[column]), of=of, source=TOTALS)
            for key, (column, of) in FUNNEL.items()
            if totals.get(column)
        }
        summary = self.reader.json(f"{folder}/analysis/analysis_summary.json")
        if summary is not None:
            count = len(summary["evidence_only_card_ids"])
            found["evidence_only_cards"] = Figure(
                value=count, n=summary["eligible_cards"], of="eligible cards",
                source=f"{folder}/analysis/analysis_summary.json",
            )  # fmt: skip
        for operation in ("ADD", "REWRITE"):
            found[f"candidates_{operation.lower()}"] = Figure(
                value=sum(c.operation == operation for c in candidates),
                n=len(candidates), of="candidates",
                source=candidates[0].source if candidates else folder,
            )  # fmt: skip
        ledger = f"{folder}/gate/proposal_ledger.jsonl"
        if (self.reader.root / ledger).is_file():
            rows = len(self.reader.lines(ledger))
            found["ledger_rows"] = Figure(value=rows, n=rows, of="candidates", source=ledger)
        for label, count in sorted(self._classes(number).items()):
            found[label] = Figure(
                value=count, n=found["generated_groups"].n, of="groups",
                source=f"{ANALYSIS}/training_groups.csv",
            )  # fmt: skip
        return found

    def _classes(self, number: int) -> Counter[str]:
        return Counter(r["classification"] for r in self.groups if int(r["round"]) == number)


def _with_rho(bank: Bank, rho: Mapping[str, float]) -> Bank:
    chunks = [c.model_copy(update={"rho": rho.get(c.skill_id)}) for c in bank.chunks]
    return bank.model_copy(update={"chunks": chunks})


def _folders(reader: Reader) -> set[int]:
    found = (re.fullmatch(r"round-(\d{3})", p.name) for p in (reader.root / "artifacts").glob("*"))
    return {int(match[1]) for match in found if match}


def _optional(reader: Reader, name: str) -> Any:
    return reader.json(f"{ANALYSIS}/{name}")


def _optional_table(reader: Reader, name: str) -> list[dict[str, str]]:
    return reader.table(f"{ANALYSIS}/{name}")


def _int(text: str | None) -> int | None:
    return int(text) if text else None


def _number(text: str) -> float | int | None:
    if text == "":
        return None
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)


def _table(rows: Sequence[dict[str, str]], source: str) -> Table:
    columns = list(rows[0]) if rows else []
    keep = [c for c in columns if any(row[c] for row in rows) and c != "primary_run"]
    return Table(
        columns=keep, rows=[[_number(row[c]) for c in keep] for row in rows], source=source
    )


def _updates(reader: Reader) -> list[dict[str, float]]:
    rows = reader.table(f"{ANALYSIS}/wandb/optimizer_updates.csv")
    return [{k: float(v) for k, v in row.items() if v} for row in rows]
