"""A gate's files → its rows. Publishing again changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from intraskill_web.experiments.models import Round
from intraskill_web.gates.models import Contribution, GateRun
from intraskill_web.skills.publish import title_of
from trainer.files import read_json

Json = Mapping[str, Any]


def publish_gate(round_: Round, folder: Path, *, run: Path) -> GateRun:
    """The gate run in ``folder`` and its contributions. Raises InputError without its files."""
    manifest = read_json(folder / "online_gate_manifest.json")
    contributions = read_json(folder / "contributions.json")
    inference = read_json(folder / "inference.json")
    reward = contributions["estimates"]["reward"]
    delta = inference["delta"]
    gate, _made = GateRun.objects.update_or_create(
        round=round_,
        profile=inference["profile"],
        defaults={
            "status": manifest["status"],
            "pool_sha256": contributions["pool_sha256"],
            "assignment_sha256": contributions["assignment_sha256"],
            "observations": contributions["observations"],
            "requested": contributions["requested_observations"],
            "bare_mean": reward["bare_mean"],
            "masked_mean": reward["masked_mean"],
            "delta_mean": reward["delta_mean"],
            "delta_low": delta["ci95"][0],
            "delta_high": delta["ci95"][1],
            "summary": _summary(manifest, contributions, inference),
            "path": folder.relative_to(run).as_posix(),
        },
    )
    titles = _titles(folder)
    rows = {row["intervention_id"]: row for row in inference["rows"]}
    gate.contributions.all().delete()
    Contribution.objects.bulk_create(
        _contribution(gate, place, row, rows[row["intervention_id"]], titles)
        for place, row in enumerate(contributions["contributions"])
    )
    return gate


def _contribution(
    gate: GateRun, place: int, row: Json, inferred: Json, titles: Mapping[str, str]
) -> Contribution:
    return Contribution(
        gate=gate,
        order=place,
        intervention_id=row["intervention_id"],
        logical_chunk_id=row["logical_chunk_id"],
        operation=row["operation"] or "",
        kind=row["kind"],
        title=titles.get(row["intervention_id"], ""),
        coefficient=row["coefficient"],
        se=inferred["se"],
        low=inferred["ci95"][0],
        high=inferred["ci95"][1],
        rank=row["rank"],
        status=row["status"],
        with_n=inferred["with_n"],
        without_n=inferred["without_n"],
    )


def _summary(manifest: Json, contributions: Json, inference: Json) -> dict[str, Any]:
    """What the pages say about a gate beyond its own columns."""
    return {
        "counts": (manifest.get("summary") or {}).get("counts"),
        "estimator": contributions["estimator"],
        "standard_errors": inference["standard_errors"],
        "degrees_of_freedom": inference["degrees_of_freedom"],
        "dropped_episode_ids": contributions["dropped_episode_ids"],
        "active_skill_budget": contributions["active_skill_budget"],
        "checkpoint_id": contributions["bare_baseline"].get("checkpoint_id"),
    }


def _titles(folder: Path) -> dict[str, str]:
    """Titles by intervention id, from the pool the gate judged."""
    pool = read_json(folder.parent / "analysis" / "candidate_pool.json")
    active = {
        item["skill_id"]: title_of(item["content"], item["metadata"])
        for item in pool["current_skills"]
    }
    proposed = {
        item["candidate_id"]: title_of(item["content"], item["metadata"])
        for item in pool["candidates"]
    }
    return active | proposed
