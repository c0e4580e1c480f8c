"""The documents of a stage, hashed twice: their bytes, and their contents without times.

The hash of the bytes finds damage. The hash of the contents is equal for equal work: it leaves out
times and durations, and where the run folder lies.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from intraskill_web.experiments.models import Document, Round
from jobs.layout import RoundPlan
from trainer.canonical import canonical_json, sha256_file
from trainer.files import read_json
from trainer.rollout.traces import TIME_KEYS

# kind → glob in the round's folder
FILES: dict[str, dict[str, str]] = {
    "freeze": {
        "bank": "skillbank.json",
        "curriculum": "curriculum.json",
        "baseline_bare": "baseline/bare/traces.jsonl",
        "baseline_full": "baseline/full/traces.jsonl",
    },
    "train": {
        "train_manifest": "train/manifest.json",
        "metrics": "train/metrics.jsonl",
        "updates": "train/updates.jsonl",
        "times": "train/perf.jsonl",
        "groups": "train/groups.jsonl",
        "episodes": "train/steps/step-*.jsonl.gz",
        "checkpoint": "train/checkpoint/checkpoint.json",
        "weights": "train/checkpoint/weights.pt",
    },
    "analyse": {
        "pool": "analysis/candidate_pool.json",
        "proposals": "analysis/proposal_ledger.jsonl",
    },
    "validate": {
        "validate_bare": "validate/bare/traces.jsonl",
        "validate_full": "validate/full/traces.jsonl",
    },
    "gate": {
        "assignment": "gate/mask_assignments.json",
        "contributions": "gate/contributions.json",
        "inference": "gate/inference.json",
        "selected_bank": "gate/selected_skillbank.json",
        "ledger": "gate/proposal_ledger.jsonl",
        "masked": "gate/traces.jsonl",
        "looks": "gate/looks/look-*/mask_assignments.json",
        "confirmation": "gate/confirm/*/traces.jsonl",
    },
    "select": {
        "test_bare": "test/bare/traces.jsonl",
        "test_full": "test/full/traces.jsonl",
    },
}
LEFT_OUT = TIME_KEYS | {
    "seconds",
    "updated_at",
    "duration_ms_mean",
    "contributions_sha256",  # of a text that holds its time
}
BINARY = frozenset({".pt"})


def of_stage(round_: Round, plan: RoundPlan, stage: str) -> list[Document]:
    """The documents that a stage left, hashed and not yet saved."""
    return [
        Document(
            experiment=round_.experiment,
            round=round_,
            kind=kind,
            path=path.relative_to(plan.run).as_posix(),
            sha256=sha256_file(path),
            content_sha256="" if path.suffix in BINARY else content_hash(path, plan.run),
            size=path.stat().st_size,
        )
        for kind, pattern in FILES[stage].items()
        for path in sorted(plan.folder.glob(pattern))
    ]


def save(documents: list[Document]) -> None:
    """Write the rows over what a former attempt may have left."""
    Document.objects.bulk_create(
        documents,
        update_conflicts=True,
        unique_fields=["experiment", "path"],
        update_fields=["kind", "round", "sha256", "content_sha256", "size"],
    )


def hashes_of(round_: Round) -> dict[str, str]:
    """Kind → hash of the contents of a finished round, several files of a kind taken together."""
    parts: dict[str, list[str]] = {}
    for document in round_.documents.exclude(content_sha256="").order_by("path"):
        parts.setdefault(document.kind, []).append(document.content_sha256)
    return {
        kind: hashes[0]
        if len(hashes) == 1
        else hashlib.sha256("".join(hashes).encode()).hexdigest()
        for kind, hashes in sorted(parts.items())
    }


def content_hash(path: Path, run: Path) -> str:
    """SHA-256 of what a JSON document or JSON lines file says, times and places left out."""
    digest = hashlib.sha256()
    for value in _values(path):
        digest.update(canonical_json(_reduced(value, str(run))).encode())
        digest.update(b"\n")
    return digest.hexdigest()


def _values(path: Path) -> Iterator[Any]:
    if path.suffix == ".json":
        yield read_json(path)
        return
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as handle:
        for line in handle:
            yield json.loads(line)


def _reduced(value: Any, run: str) -> Any:
    if isinstance(value, Mapping):
        return {key: _reduced(item, run) for key, item in value.items() if key not in LEFT_OUT}
    if isinstance(value, list):
        return [_reduced(item, run) for item in value]
    if isinstance(value, str) and run in value:
        return value.replace(run, "")
    return value
