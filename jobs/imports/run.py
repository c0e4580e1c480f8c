"""Import a folder under a name: copy, read into rows, hash, count."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from intraskill_web.core import audit
from intraskill_web.experiments.models import Document, Experiment
from intraskill_web.gates.models import Contribution
from jobs.imports import folder as layout
from jobs.imports import own, published
from jobs.imports.hashes import check_files
from jobs.imports.report import Report
from trainer.canonical import fingerprint
from trainer.errors import InputError

IMPORTED = "imported"
# what an import writes beside the copies
DERIVED = "derived"


def import_run(source: Path, name: str) -> dict[str, Any]:
    """Import ``source`` as the experiment ``name``; importing it again changes nothing.

    Raises InputError for a folder of neither layout and for a name that is taken by a run that was
    not imported.
    """
    found = layout.find(source) if source.is_dir() else None
    if found is None and not own.is_own(source):
        raise InputError(
            "is neither a published run nor a run folder",
            file=source,
            remedy="expected a folder with artifacts/ or with experiment.json",
        )
    report = Report()
    with transaction.atomic():
        experiment = _experiment(name, "slime" if found else "local")
        if found is not None:
            copied = layout.copy(found, experiment.folder)
            check_files(copied, report)
            published.publish(experiment, copied, report)
            _documents(experiment, copied)
        else:
            _copy_run(source, experiment.folder)
            own.publish(experiment, experiment.folder, report)
            report.verified += experiment.documents.count()
        experiment.config_sha256 = fingerprint(experiment.config)
        experiment.save(update_fields=["config_sha256", "updated_at"])
        audit.record("experiment.import", experiment=name, mismatched=len(report.mismatched))
    return counts(experiment) | {
        "missing": report.missing,
        "verified": report.verified,
        "mismatched": report.mismatched,
    }


def counts(experiment: Experiment) -> dict[str, Any]:
    """How many rows of each kind an experiment has."""
    return {
        "experiment": experiment.name,
        "rounds": experiment.rounds.count(),
        "skill_versions": experiment.skill_versions.count(),
        "contributions": Contribution.objects.filter(gate__round__experiment=experiment).count(),
        "candidates": experiment.candidates.count(),
        "episodes": experiment.episodes.count(),
    }


def _experiment(name: str, engine: str) -> Experiment:
    experiment = Experiment.objects.select_for_update().filter(name=name).first()
    if experiment is not None:
        if IMPORTED not in experiment.config:
            raise InputError(
                "an experiment of this name exists and was not imported",
                field="name", value=name, remedy="Choose another name",
            )  # fmt: skip
        return experiment
    experiment = Experiment(
        name=name, engine=engine, auto_continue=False, config={IMPORTED: "begun"}
    )
    try:
        experiment.clean_fields(exclude=["owner"])
    except ValidationError as error:
        raise InputError("is no name", field="name", value=name) from error
    experiment.save()
    return experiment


def _copy_run(source: Path, target: Path) -> None:
    """Copy a run folder, unless it lies in its place already."""
    if source.resolve() != target.resolve():
        shutil.copytree(source, target, dirs_exist_ok=True, symlinks=True)


def _documents(experiment: Experiment, copied: layout.PublishedFolder) -> None:
    """A row for every copied file, by the hash of its bytes."""
    rounds = {round_.number: round_ for round_ in experiment.rounds.all()}
    rows = []
    for path in sorted(p for p in copied.root.rglob("*") if p.is_file()):
        relative = copied.relative(path)
        if relative.startswith(f"{DERIVED}/"):
            continue  # made again by every import
        match = next((m for part in path.parts if (m := layout.ROUND.fullmatch(part))), None)
        rows.append(
            Document(
                experiment=experiment,
                round=rounds.get(int(match[1])) if match else None,
                kind=path.stem[:40],
                path=relative,
                sha256=layout.sha256(path),
                size=path.stat().st_size,
            )
        )
    Document.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["experiment", "path"],
        update_fields=["kind", "round", "sha256", "size"],
    )
