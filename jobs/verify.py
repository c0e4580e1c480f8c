"""Hashing an experiment's documents again."""

from __future__ import annotations

from typing import Any

from intraskill_web.experiments.models import Experiment
from trainer.canonical import sha256_file


def verify(experiment: Experiment) -> dict[str, Any]:
    """How many documents still have the bytes that were recorded, and which have not."""
    verified = 0
    mismatched: list[dict[str, str]] = []
    for document in experiment.documents.order_by("path"):
        path = experiment.folder / document.path
        if not path.is_file():
            mismatched.append({"path": document.path, "problem": "is missing"})
        elif (found := sha256_file(path)) != document.sha256:
            problem = f"hash is {found}, recorded was {document.sha256}"
            mismatched.append({"path": document.path, "problem": problem})
        else:
            verified += 1
    return {
        "experiment": experiment.name,
        "documents": verified + len(mismatched),
        "verified": verified,
        "mismatched": mismatched,
    }
