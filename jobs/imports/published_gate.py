"""A published gate → its row and its contributions.

With ``contributions.json`` everything is there: standard errors and intervals come from the
observations it holds, and the stored coefficients are checked by fitting again. Without it the
table of contributions gives coefficients, ranks and statuses, the manifest the means, and the masks
drawn again the counts; intervals stay unknown.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from intraskill_web.experiments.models import Round
from intraskill_web.gates import design as gate_design
from intraskill_web.gates.models import Contribution, GateRun
from intraskill_web.gates.publish import publish_gate
from intraskill_web.skills.publish import title_of
from jobs.imports.folder import PublishedFolder
from jobs.imports.hashes import Design
from jobs.imports.report import Report
from trainer.files import write_json
from trainer.gate.artefacts import inference_document
from trainer.gate.pool import load_pool
from trainer.gate.refit import FinishedGate, fit_published, load_finished, scores

CONTRIBUTIONS = "contributions.json"
TABLE = "chunk_contributions.csv"


def publish_gate_round(
    round_: Round, folder: PublishedFolder, design: Design | None, report: Report
) -> GateRun | None:
    """The gate of a round; None when the folder holds nothing of it. Raises InputError."""
    gate = folder.round(round_.number) / "gate"
    if (gate / CONTRIBUTIONS).is_file():
        if not (gate / "inference.json").is_file():
            write_json(gate / "inference.json", _inference(load_finished(gate)))
        return publish_gate(round_, gate, run=folder.root)
    report.absent(folder.relative(gate / CONTRIBUTIONS))
    rows = folder.of_round(TABLE, round_.number)
    if not rows:
        report.absent(f"{folder.relative(folder.analysis)}/{TABLE}: round {round_.number}")
        return None
    manifest = folder.json(gate / "online_gate_manifest.json")
    if manifest is None:
        report.absent(folder.relative(gate / "online_gate_manifest.json"))
    run, _made = GateRun.objects.update_or_create(
        round=round_,
        profile="published",
        defaults={
            **_facts(manifest),
            "summary": _summary(manifest, folder, round_, design),
            "path": folder.relative(gate) if gate.is_dir() else "",
        },
    )
    titles = _titles(folder, round_.number)
    shown = _counts(design)
    run.contributions.all().delete()
    Contribution.objects.bulk_create(
        _contribution(run, place, row, titles, shown) for place, row in enumerate(rows)
    )
    return run


def _inference(gate: FinishedGate) -> dict[str, Any]:
    """What the published schemas have no place for, from the gate's own observations."""
    rows = [r for r in gate.rows if r["sample_id"] == 0 and r["bare_reward"] is not None]
    masks = np.array([row["mask"] for row in rows], dtype=np.float64)
    delta = scores(gate, rows) - scores(gate, rows, bare=True)
    return inference_document(gate.layout, masks, fit_published(gate), gate.outcomes, delta)


def _facts(manifest: dict[str, Any] | None) -> dict[str, Any]:
    """Columns of the row that the manifest knows; without one nothing but the end is known."""
    if manifest is None:
        return {"status": "complete"}
    inputs = manifest["input"]
    bare, counts = inputs["bare_baseline"], manifest["summary"]["counts"]
    masked_mean = manifest["summary"]["primary"]["reward_mean"]
    bare_mean = bare["mean_outcomes"]["reward"]
    return {
        "status": manifest["status"],
        "pool_sha256": inputs["pool_sha256"],
        "assignment_sha256": inputs["assignment_sha256"],
        "observations": min(counts["scored"], bare["observations"]),
        "requested": bare["requested_observations"],
        "bare_mean": bare_mean,
        "masked_mean": masked_mean,
        "delta_mean": masked_mean - bare_mean,
    }


def _summary(
    manifest: dict[str, Any] | None,
    folder: PublishedFolder,
    round_: Round,
    design: Design | None,
) -> dict[str, Any]:
    totals = folder.of_round("rounds.csv", round_.number)
    summary: dict[str, Any] = {"imported": True}
    if totals and totals[0]["gate_refit_max_error"]:
        summary["refit_error"] = float(totals[0]["gate_refit_max_error"])
    if design is not None:
        summary["design"] = gate_design.facts(
            design.masks, design.layout.columns, design.layout.slots
        )
    if manifest is None:
        return summary
    inputs, counts = manifest["input"], manifest["summary"]["counts"]
    bare = inputs["bare_baseline"]
    return summary | {
        "masked_n": counts["scored"],
        "bare_n": bare["observations"],
        "counts": counts,
        "estimator": {"name": manifest["protocol"]["estimator"]},
        "dropped_episode_ids": [],
        "active_skill_budget": manifest["config"]["active_skill_budget"],
        "checkpoint_id": bare["checkpoint_id"],
        "masked_checkpoint_id": inputs["model"]["checkpoint_id"],
        "components": {
            name: [bare["mean_outcomes"].get(name), value]
            for name, value in manifest["summary"]["reward_components"].items()
        },
    }


def _titles(folder: PublishedFolder, number: int) -> dict[str, str]:
    """Titles by intervention id, as far as pools and banks give them."""
    path: Path = folder.round(number) / "analysis" / "candidate_pool.json"
    found: dict[str, str] = {}
    if path.is_file():
        pool = load_pool(path)
        found = {c.skill_id: title_of(c.content, c.metadata) for c in pool.current}
        found |= {c.candidate_id: title_of(c.content, c.metadata) for c in pool.candidates}
    elif folder.bank(number).is_file():
        skills = folder.json(folder.bank(number))["skills"]
        found = {s["skill_id"]: title_of(s["content"], s["metadata"]) for s in skills}
    return found


def _counts(design: Design | None) -> dict[str, tuple[int, int]]:
    """How many tasks showed each version and how many did not."""
    if design is None:
        return {}
    n, sums = len(design.masks), design.masks.sum(axis=0)
    return {name: (int(sums[j]), n - int(sums[j])) for j, name in enumerate(design.layout.columns)}


def _contribution(
    gate: GateRun,
    place: int,
    row: dict[str, str],
    titles: dict[str, str],
    shown: dict[str, tuple[int, int]],
) -> Contribution:
    name = row["intervention_id"]
    with_n, without_n = shown.get(name, (0, 0))
    return Contribution(
        gate=gate,
        order=place,
        intervention_id=name,
        logical_chunk_id=row["logical_chunk_id"],
        operation=row["operation"],
        kind=row["kind"],
        title=titles.get(name, ""),
        coefficient=float(row["coefficient"]),
        rank=int(row["rank"]) if row["rank"] else None,
        status=row["status"],
        with_n=with_n,
        without_n=without_n,
    )
