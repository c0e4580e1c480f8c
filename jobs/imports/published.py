"""A published folder → experiment, rounds, stages, skill versions, curricula and candidates.

Specification: published-figures.md. The publisher trained with slime; what one of its rounds went
through and this folder does not hold is a stage that succeeded without files, and its message says
so.
"""

from __future__ import annotations

from typing import Any

from intraskill_web.experiments.models import Experiment, Round, Stage
from intraskill_web.experiments.states import STAGE_ORDER
from intraskill_web.gates.publish import gate_outcome
from intraskill_web.ledger.models import Candidate
from intraskill_web.ledger.publish import publish_candidates, publish_results
from intraskill_web.skills.models import ChunkRevision, SkillVersion, SkillVersionChunk
from intraskill_web.skills.publish import publish_bank, publish_curriculum
from jobs.imports.folder import PublishedFolder
from jobs.imports.hashes import check_contents, rebuilt_design
from jobs.imports.metrics import publish_steps, publish_updates
from jobs.imports.published_gate import publish_gate_round
from jobs.imports.report import Report
from jobs.imports.scores import publish_arms, publish_validation
from jobs.transitions import State
from trainer.skills.bank import load_bank
from trainer.skills.curriculum import load_curriculum, write_curriculum
from trainer.skills.curriculum_build import next_published

UNPUBLISHED = "unpublished"  # the version of a chunk whose text the folder does not hold
COUNTS = ("analyzed_cards", "eligible_cards", "candidate_count", "all_wrong_groups")


def publish(experiment: Experiment, folder: PublishedFolder, report: Report) -> None:
    """All rows of the folder. Damage in a file is reported and leaves out what rests on it."""
    numbers = folder.rounds()
    experiment.rounds_planned = max(numbers, default=-1) + 1
    steps = _steps_a_round(folder)
    experiment.config = _config(folder, steps)
    experiment.state = "succeeded" if numbers else "planned"
    experiment.save()
    with report.part(folder.relative(folder.bank(0))):
        _version(experiment, folder, 0, None, report)
    for number in numbers:
        round_, _made = Round.objects.update_or_create(
            experiment=experiment, number=number, defaults={"state": "succeeded"}
        )
        _publish_round(round_, folder, steps, report)
    publish_arms(experiment, folder, report)


def _publish_round(round_: Round, folder: PublishedFolder, steps: int, report: Report) -> None:
    number, where = round_.number, folder.relative(folder.round(round_.number))
    outcomes: dict[str, dict[str, Any]] = {kind: {} for kind in STAGE_ORDER}
    check_contents(folder, number, report)
    with report.part(folder.relative(folder.curriculum(number))):
        outcomes["freeze"] = _curriculum(round_, folder, report)
    outcomes["train"] = publish_steps(round_, folder, report) | publish_updates(round_, folder)
    with report.part(f"{where}/analysis"):
        outcomes["analyse"] = _analysis(round_, folder)
    with report.part(f"{where}/gate"):
        outcomes["validate"] = publish_validation(round_, folder, step=(number + 1) * steps)
        design = rebuilt_design(folder, number, report)
        gate = publish_gate_round(round_, folder, design, report)
        if gate is not None:
            publish_results(gate)
            outcomes["gate"] = gate_outcome(gate)
    with report.part(folder.relative(folder.bank(number + 1))):
        outcomes["select"] = _version(round_.experiment, folder, number + 1, round_, report)
    for kind, outcome in outcomes.items():
        Stage.objects.update_or_create(
            round=round_,
            kind=kind,
            defaults={
                "state": State.SUCCEEDED.value,
                "outcome": outcome,
                "message": "" if outcome else "nothing of this stage is in the imported folder",
            },
        )


def _config(folder: PublishedFolder, steps: int) -> dict[str, Any]:
    """The settings that the artefacts state, under the names of an ``ExperimentConfig``."""
    config: dict[str, Any] = {"imported": "published"}
    if steps:
        config["train"] = {"steps": steps}
    first = folder.curriculum(0)
    if first.is_file():
        document = folder.json(first)
        mapping = document["source"]["probability_mapping"]
        config["curriculum"] = {
            "skill_free_probability": document["skill_free_probability"],
            "rho_min": mapping["rho_min"],
            "rho_max": mapping["rho_max"],
        }
        config["mask_seed"] = document["seed"]
    manifest = folder.json(folder.round(0) / "gate" / "online_gate_manifest.json")
    if manifest:
        budget = manifest["config"]["active_skill_budget"]
        config["gate"] = {"profile": "published", "active_skill_budget": budget}
    return config


def _steps_a_round(folder: PublishedFolder) -> int:
    """Training steps of a round; 0 when nothing says it."""
    rows = folder.table("rounds.csv")
    return int(rows[0]["step"]) // (int(rows[0]["round"]) + 1) if rows else 0


def _curriculum(round_: Round, folder: PublishedFolder, report: Report) -> dict[str, Any]:
    """The round's curriculum; a missing one is derived from its bank, as its builder would."""
    path = folder.curriculum(round_.number)
    if not path.is_file():
        report.absent(folder.relative(path))
        before, bank = folder.curriculum(round_.number - 1), folder.bank(round_.number)
        if not before.is_file() or not bank.is_file():
            return {}
        path = folder.root / "derived" / f"round-{round_.number:03d}" / "curriculum.json"
        if not path.is_file():
            _derive(folder, round_.number, path)
    curriculum = publish_curriculum(round_, path)
    return {
        "state_id": curriculum.state_id,
        "q": curriculum.q,
        "chunks": len(curriculum.chunks),
        "derived": "derived" in path.parts,
    }


def _derive(folder: PublishedFolder, number: int, path: Any) -> None:
    before = load_curriculum(folder.curriculum(number - 1))
    bank = load_bank(folder.bank(number))
    write_curriculum(path, next_published(before, bank, number=number))


def _analysis(round_: Round, folder: PublishedFolder) -> dict[str, Any]:
    """Candidates from the pool, or by name alone from the table of contributions."""
    analysis = folder.round(round_.number) / "analysis"
    pool = analysis / "candidate_pool.json"
    if pool.is_file():
        publish_candidates(round_, pool)
    else:
        for row in folder.of_round("chunk_contributions.csv", round_.number):
            if row["kind"] == "candidate":
                _named_candidate(round_, row)
    summary = folder.json(analysis / "analysis_summary.json")
    if summary is not None:
        return {k: v for k, v in summary.items() if isinstance(v, int | float)}
    totals = folder.of_round("rounds.csv", round_.number)
    return {key: int(totals[0][key]) for key in COUNTS} if totals else {}


def _named_candidate(round_: Round, row: dict[str, str]) -> None:
    rewrite = row["operation"] == "REWRITE"
    Candidate.objects.get_or_create(
        round=round_,
        candidate_id=row["intervention_id"],
        defaults={
            "experiment": round_.experiment,
            "operation": row["operation"],
            "target_chunk_id": row["logical_chunk_id"] if rewrite else "",
            "status": "pooled",
        },
    )


def _version(
    experiment: Experiment,
    folder: PublishedFolder,
    number: int,
    round_: Round | None,
    report: Report,
) -> dict[str, Any]:
    """S_number from its bank; without the bank, from what the gate selected, texts unknown."""
    path = folder.bank(number)
    if path.is_file():
        version = publish_bank(experiment, path, number=number, from_round=round_)
    else:
        report.absent(folder.relative(path))
        if round_ is None:
            return {}
        made = _selected(experiment, folder, round_)
        if made is None:
            return {}
        version = made
    return {
        "label": version.label,
        "bank_sha256": version.bank_sha256,
        "bank_size": version.entries.count(),
    }


def _selected(
    experiment: Experiment, folder: PublishedFolder, round_: Round
) -> SkillVersion | None:
    """The version that a round's contributions describe, in prompt order."""
    rows = folder.of_round("chunk_contributions.csv", round_.number)
    kept = sorted((r for r in rows if r["status"] == "selected"), key=lambda r: int(r["order"]))
    if not kept:
        return None
    number = round_.number + 1
    version, _made = SkillVersion.objects.update_or_create(
        experiment=experiment,
        number=number,
        defaults={"label": f"S{number}", "bank_sha256": "", "path": "", "from_round": round_},
    )
    version.entries.all().delete()
    SkillVersionChunk.objects.bulk_create(
        SkillVersionChunk(
            version=version,
            revision=_known_text(experiment, row),
            order=order,
            effect=float(row["coefficient"]),
        )
        for order, row in enumerate(kept)
    )
    return version


def _known_text(experiment: Experiment, row: dict[str, str]) -> ChunkRevision:
    """The newest text of an unchanged chunk, or a text that is marked as unknown."""
    skill_id = row["logical_chunk_id"]
    if row["kind"] == "current":
        texts = ChunkRevision.objects.filter(experiment=experiment, skill_id=skill_id)
        known = texts.exclude(version=UNPUBLISHED).order_by("-id").first()
        if known is not None:
            return known
    revision, _made = ChunkRevision.objects.get_or_create(
        experiment=experiment,
        skill_id=skill_id,
        content_sha256="",
        defaults={
            "content": "",
            "version": UNPUBLISHED,
            "title": row["intervention_id"],
        },
    )
    return revision
