"""Checks a published folder against every hash that it states about itself.

Sources: the manifest beside the artefacts (bytes), the analysis' list of inputs (text with LF line
ends), and what documents say about their own contents: pools, curricula, banks, ledgers, and the
assignments of gates, which are drawn again from their seeds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobs.imports.folder import PublishedFolder, sha256
from jobs.imports.report import Report
from trainer.canonical import fingerprint
from trainer.gate.assignment import assignment_document, design_matrix, draw_assignments
from trainer.gate.ledger import load_ledger
from trainer.gate.pool import load_pool
from trainer.gate.slots import Layout, build_layout
from trainer.skills.bank import load_bank
from trainer.skills.curriculum import load_curriculum

# The published experiment's seed. No artefact states it; that the assignments come out with their
# recorded hash proves it for a folder.
EXPERIMENT_SEED = 20260830


@dataclass(frozen=True, slots=True)
class Design:
    """The masks of a gate: one row a task, one column a version."""

    layout: Layout
    masks: NDArray[np.float64]


def check_files(folder: PublishedFolder, report: Report) -> None:
    """Compare files with the lists of hashes that come with them."""
    manifest = folder.json(folder.root / "MANIFEST.json")
    for entry in manifest["files"] if manifest else []:
        path = folder.root / entry["path"]
        if not path.is_file():
            report.absent(entry["path"])
            continue
        report.check(entry["path"], sha256(path), entry["sha256"])
    provenance = folder.json(folder.analysis / "provenance.json")
    for name, recorded in sorted((provenance or {}).get("inputs", {}).items()):
        path = folder.root / name
        if not path.is_file():
            report.absent(name)
            continue
        report.check(name, sha256(path, lf=True), recorded, "hash of its text")


def check_contents(folder: PublishedFolder, number: int, report: Report) -> None:
    """Read a round's documents, which carry their own hashes, and the gate's list of outputs."""
    gate = folder.round(number) / "gate"
    manifest = folder.json(gate / "online_gate_manifest.json")
    outputs: dict[str, Any] = (manifest or {}).get("output") or {}
    _read(folder, folder.curriculum(number), load_curriculum, report)
    _read(folder, folder.round(number) / "analysis" / "candidate_pool.json", load_pool, report)
    bank = gate / "selected_skillbank.json"
    if bank.is_file():
        _read(folder, bank, load_bank, report, counts=False)
        if recorded := outputs.get("selected_skillbank_sha256"):
            report.check(folder.relative(bank), fingerprint(folder.json(bank)), recorded)
    ledger = gate / "proposal_ledger.jsonl"
    if ledger.is_file() and (recorded := outputs.get("proposal_ledger_sha256")):
        report.check(folder.relative(ledger), fingerprint(load_ledger(ledger)), recorded)


def _read(
    folder: PublishedFolder, path: Any, load: Any, report: Report, *, counts: bool = True
) -> None:
    if not path.is_file():
        report.absent(folder.relative(path))
        return
    with report.part(folder.relative(path)):
        load(path)
        report.verified += counts


def rebuilt_design(folder: PublishedFolder, number: int, report: Report) -> Design | None:
    """The masks of a round's gate, drawn again; None where seeds, pool or split are absent.

    Raises InputError for a damaged pool. A hash that does not come out is a mismatch.
    """
    pool_file = folder.round(number) / "analysis" / "candidate_pool.json"
    manifest = folder.json(folder.round(number) / "gate" / "online_gate_manifest.json")
    if manifest is None or not pool_file.is_file():
        return None
    tasks = manifest["input"]["task_ids"]
    pool = load_pool(pool_file)
    layout = build_layout(pool)
    seed = manifest["config"]["mask_seed"]
    rows = draw_assignments(
        layout,
        task_ids=tasks,
        split=manifest["protocol"]["split"],
        experiment_seed=EXPERIMENT_SEED,
        mask_seed=seed,
    )
    document = assignment_document(layout, rows, mask_seed=seed, pool_sha256=pool.pool_sha256)
    path = folder.relative(folder.round(number) / "gate") + "/mask_assignments.json"
    recorded = manifest["input"]["assignment_sha256"]
    if not report.check(path, document["assignment_sha256"], recorded, "hash of the drawn masks"):
        return None
    return Design(layout, design_matrix(rows, layout.columns))
