"""A gate's folder: which gate it belongs to, and whether that gate has ended.

The first thing a gate writes is who it is; everything else in the folder then belongs to it. The
last thing is its manifest, with the hashes of what it found. So a folder can be continued by the
same gate only, and an ended gate is known from one that was cut short. Specification:
gate-analysis.md §§4, 8.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainer.canonical import fingerprint
from trainer.errors import InputError
from trainer.files import read_json, read_jsonl, write_json
from trainer.gate.artefacts import output_hashes
from trainer.reading import read_node

IDENTITY = "gate.json"
MANIFEST = "online_gate_manifest.json"
SCHEMA = "intraskill-gate-identity-v1"


def claim(folder: Path, identity: Mapping[str, Any]) -> None:
    """Make the folder this gate's. Raises InputError when another gate works or worked here."""
    mark = fingerprint(identity)
    _require_gate(folder / "manifest.json")
    for path in (folder / IDENTITY, folder / MANIFEST):
        if not path.exists():
            continue
        document = read_json(path)
        found = document.get("gate_fingerprint") if isinstance(document, dict) else document
        if found != mark:
            raise InputError(
                "the folder holds another gate",
                file=path,
                field="gate_fingerprint",
                value=found,
                remedy="choose another output_dir, or restore the settings of that gate",
            )
    if not (folder / IDENTITY).exists():
        write_json(
            folder / IDENTITY,
            {"schema_version": SCHEMA, "gate_fingerprint": mark, "identity": dict(identity)},
        )


def _require_gate(path: Path) -> None:
    """Raise InputError when the folder holds the evaluation of something else than a gate."""
    if path.exists() and "online_validation_gate" not in read_node(path)["plan"].mapping():
        raise InputError(
            "the folder holds an evaluation that is no gate",
            file=path,
            field="plan.online_validation_gate",
            remedy="choose another output_dir",
        )


def finished_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest if the gate has ended and all that it wrote is still whole."""
    if not (folder / MANIFEST).exists() or not (folder / "selected_skill.md").exists():
        return None
    manifest: dict[str, Any] = read_json(folder / MANIFEST)
    if manifest.get("status") != "complete":
        return None
    try:
        outputs = output_hashes(
            read_json(folder / "contributions.json"),
            read_json(folder / "inference.json"),
            read_json(folder / "selected_skillbank.json"),
            list(read_jsonl(folder / "proposal_ledger.jsonl")),
        )
    except (InputError, TypeError, KeyError, AttributeError):  # damaged: it is written again
        return None
    return manifest if outputs == manifest.get("output") else None
