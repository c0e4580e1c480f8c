"""A run folder of ours → the document. Layout: docs/design/architecture.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from trainer.analysis import optimiser
from trainer.analysis.banks import bank_of, candidates_of, curriculum_of, titles
from trainer.analysis.cases import cases
from trainer.analysis.cohorts import Population, describe, pair
from trainer.analysis.gates import fitted
from trainer.analysis.material import Material
from trainer.analysis.own_tests import Evaluations, evaluation_folders, own_tests
from trainer.analysis.own_traces import read_all, training_population
from trainer.analysis.reader import Reader
from trainer.analysis.schema import SCHEMA, Analysis
from trainer.analysis.schema_rounds import Bank, Candidate, Coefficient, Gate, Round
from trainer.analysis.schema_values import Figure, Table

Json = Mapping[str, Any]
# Of the experiment's settings only these are part of the document: the others name places.
SETTINGS = ("engine", "seed", "mask_seed", "rounds", "temperature", "max_new_tokens", "curriculum",
            "train", "evaluation", "gate")  # fmt: skip


def analyse(reader: Reader, name: str) -> Material:
    """The document of a run folder, as far as the run has come. Raises InputError for damage."""
    config = reader.json("experiment.json")
    found = _Own(reader, int(config["train"]["steps"]))
    folders = sorted(p.name for p in reader.root.glob("round-[0-9][0-9][0-9]") if p.is_dir())
    for folder in folders:
        found.add_round(int(folder[-3:]), folder)
    traces = read_all(reader, evaluation_folders(reader), folders)
    evaluations = Evaluations(reader, found.banks, found.steps, traces)
    for folder in folders:
        evaluations.add_round(int(folder[-3:]), folder)
    evaluations.add_orders()
    populations = evaluations.populations()
    populations += [
        training_population(folder, int(folder[-3:]), episodes)
        for folder, episodes in traces.training.items()
    ]
    updates = optimiser.updates_table(found.updates, _source(folders, "updates.jsonl"))
    pairs, chosen = _paired(populations, evaluations.first, evaluations.last)
    analysis = Analysis(
        schema_version=SCHEMA,
        name=name,
        kind="own",
        seed=config.get("seed"),
        rounds=found.rounds,
        gates=found.gates,
        coefficients=found.coefficients,
        banks=found.banks,
        candidates=found.candidates,
        tests=own_tests(evaluations),
        recorded=[],
        ranking=[],
        ranking_contrasts=[],
        training=found.training(_source(folders, "metrics.jsonl")),
        updates=updates,
        update_summaries=optimiser.summaries(updates),
        cohorts=[cohort for each in populations for cohort in describe(each)],
        pairs=pairs,
        cases=chosen,
        facts={},
        settings=settings_of(config) | evaluations.conditions,
        sources=dict(sorted(reader.sources.items())),
        missing=list(reader.missing),
    )
    return Material(analysis, evaluations.values, populations)


def settings_of(config: Json) -> dict[str, Any]:
    """What the run was started with, places left out."""
    found = {key: config[key] for key in SETTINGS if key in config}
    analyst = config.get("analyst") or {}
    found["analyst"] = {k: analyst[k] for k in ("kind", "max_candidates") if k in analyst}
    found["world"] = {"profile": (config.get("world") or {}).get("profile", "")}
    return found


def _source(folders: Sequence[str], name: str) -> str:
    return f"{folders[0]}/train/{name} …" if folders else name


def _paired(populations: Sequence[Population], first: str, last: str) -> tuple[Any, Any]:
    """The bare checkpoints at the start and at the end, on all tasks and where both succeed."""
    known = {each.name: each for each in populations}
    if first == last or first not in known or last not in known:
        return [], []
    a, b = known[first], known[last]
    both = [pair(a, b), pair(a, b, both_successful=True)]
    return [each for each in both if each is not None], cases(a, b)


class _Own:
    """The rounds read so far."""

    def __init__(self, reader: Reader, steps: int) -> None:
        self.reader = reader
        self.steps = steps
        self.rounds: list[Round] = []
        self.gates: list[Gate] = []
        self.coefficients: list[Coefficient] = []
        self.banks: list[Bank] = []
        self.candidates: list[Candidate] = []
        self.updates: list[dict[str, float]] = []
        self._metrics: list[dict[str, Any]] = []

    def add_round(self, number: int, folder: str) -> None:
        reader, pool = self.reader, f"{folder}/analysis/candidate_pool.json"
        q, state_id, rho = curriculum_of(reader, f"{folder}/curriculum.json")
        if reader.has(f"{folder}/skillbank.json"):
            step = number * self.steps
            self.banks = [b for b in self.banks if b.number != number]
            self.banks.append(bank_of(reader, f"{folder}/skillbank.json", number, step, rho))
        rows: list[Coefficient] = []
        if reader.has(f"{folder}/gate/contributions.json"):
            gate, rows = fitted(reader, number, f"{folder}/gate", titles(reader, pool))
            self.gates.append(gate)
            self.coefficients += rows
        selected = f"{folder}/gate/selected_skillbank.json"
        if reader.has(selected):
            step = (number + 1) * self.steps
            self.banks.append(bank_of(reader, selected, number + 1, step, {}))
        found = candidates_of(reader, number, pool, rows)
        self.candidates += found
        self._training(number, folder)
        sizes = {bank.number: len(bank.chunks) for bank in self.banks}
        self.rounds.append(
            Round(
                round=number,
                step=(number + 1) * self.steps,
                q=q,
                state_id=state_id,
                rho=rho,
                input_chunks=sizes.get(number),
                selected_chunks=sizes.get(number + 1),
                funnel=self._funnel(folder, found),
                source=f"{folder}/train/groups.jsonl",
            )
        )

    def _training(self, number: int, folder: str) -> None:
        times = {t["step"]: t["metrics"] for t in self.reader.lines(f"{folder}/train/perf.jsonl")}
        for line in self.reader.lines(f"{folder}/train/metrics.jsonl"):
            place = {"step": line["step"], "round": number}
            self._metrics.append(place | times.get(line["step"], {}) | line["metrics"])
        for line in self.reader.lines(f"{folder}/train/updates.jsonl"):
            place = {"update": line["update"], "step": line["step"], "round": number}
            self.updates.append({**place, **line["metrics"]})

    def training(self, source: str) -> Table:
        """Every metric of every step."""
        names = sorted({k for row in self._metrics for k in row if "/" in k})
        columns = ["step", "round", *names]
        rows = [[row.get(c) for c in columns] for row in self._metrics]
        return Table(columns=columns, rows=rows, source=source)

    def _funnel(self, folder: str, candidates: Sequence[Candidate]) -> dict[str, Figure]:
        name = f"{folder}/train/groups.jsonl"
        groups = self.reader.lines(name)
        found: dict[str, Figure] = {}

        def put(key: str, value: int, n: int, of: str, source: str) -> None:
            found[key] = Figure(value=value, n=n, of=of, source=source)

        if groups:
            episodes = sum(len(group["rewards"]) for group in groups)
            put("generated_groups", len(groups), len(groups), "groups", name)
            put("generated_episodes", episodes, episodes, "episodes", name)
            trained = sum(len(group["rewards"]) for group in groups if group["admitted"])
            put("trainer_episodes", trained, episodes, "episodes", name)
            wrong = sum(bool(group["all_wrong"]) for group in groups)
            put("all_wrong_groups", wrong, len(groups), "groups", name)
            for label, count in sorted(Counter(g["classification"] for g in groups).items()):
                put(label, count, len(groups), "groups", name)
        summary_name = f"{folder}/analysis/analysis_summary.json"
        summary = self.reader.json(summary_name)
        if summary:
            cards = summary["analyzed_cards"]
            put("analysed_cards", cards, summary["triage_groups"], "groups", summary_name)
            for trigger, count in sorted(summary.get("triggers", {}).items()):
                put(f"triggered_{trigger}", count, summary["triage_groups"], "groups", summary_name)
            put("eligible_cards", summary["eligible_cards"], cards, "cards", summary_name)
            only = len(summary["evidence_only_card_ids"])
            put("evidence_only_cards", only, summary["eligible_cards"], "eligible cards",
                summary_name)  # fmt: skip
            put("candidates", len(candidates), len(candidates), "candidates", summary_name)
        for operation in ("ADD", "REWRITE"):
            count = sum(c.operation == operation for c in candidates)
            put(f"candidates_{operation.lower()}", count, len(candidates), "candidates",
                f"{folder}/analysis/candidate_pool.json")  # fmt: skip
        return found
