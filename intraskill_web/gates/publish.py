"""A gate's files → its rows. Publishing again changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from intraskill_web.core.text import storable_json
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
    low, high = inference["delta"]["ci95"] or (None, None)  # no interval without bare rollouts
    per_task = manifest["protocol"]["masked_rollouts_per_task"]
    gate, _made = GateRun.objects.update_or_create(
        round=round_,
        profile=inference["profile"],
        defaults={
            "status": manifest["status"],
            "pool_sha256": contributions["pool_sha256"],
            "assignment_sha256": contributions["assignment_sha256"],
            "observations": contributions["observations"] // per_task,
            "requested": contributions["requested_observations"] // per_task,
            "bare_mean": reward["bare_mean"],
            "masked_mean": reward["masked_mean"],
            "delta_mean": reward["delta_mean"],
            "delta_low": low,
            "delta_high": high,
            "summary": storable_json(_summary(manifest, contributions, inference)),
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
    _prepare(gate)
    return gate


def _prepare(gate: GateRun) -> None:
    """Have what the page takes longest for drawn before somebody opens it."""
    from intraskill_web.gates.evidence import evidence_of

    evidence_of(gate)


def _contribution(
    gate: GateRun, place: int, row: Json, inferred: Json, titles: Mapping[str, str]
) -> Contribution:
    low, high = inferred["ci95"] or (None, None)
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
        low=low,
        high=high,
        rank=row["rank"],
        status=row["status"],
        with_n=inferred["with_n"],
        without_n=inferred["without_n"],
    )


def gate_outcome(gate: GateRun) -> dict[str, Any]:
    """What a gate's stage says of itself."""
    return {
        "status": gate.status,
        "observations": gate.observations,
        "delta_mean": gate.delta_mean,
        "selected": gate.contributions.filter(status__in=("selected", "held")).count(),
        "retired": gate.contributions.filter(status="retired").count(),
    }


def _summary(manifest: Json, contributions: Json, inference: Json) -> dict[str, Any]:
    """What the pages say about a gate beyond its own columns."""
    reward, used = contributions["estimates"]["reward"], contributions["observations"]
    return {
        "masked_n": used,
        "bare_n": reward.get("bare_observations", used),
        "min_coverage": manifest["config"].get("min_coverage", 1.0),
        "randomised": {
            row["intervention_id"]: [row["randomised_with_n"], row["randomised_without_n"]]
            for row in inference["rows"]
            if "randomised_with_n" in row
        },
        "any_text": inference.get("any_text"),
        "lack_of_fit": inference.get("lack_of_fit"),
        "looks": manifest.get("looks") or [],
        "confirmation": manifest.get("confirmation"),
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
