"""A gate's folder: which gate it belongs to, and whether that gate has ended.

The first thing a gate writes is who it is; everything else in the folder then belongs to it. The
last thing is its manifest, with the hashes of what it found. So a folder can be continued by the
same gate only, and an ended gate is known from one that was cut short. Specification:
gate-analysis.md §§4, 8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainer.canonical import fingerprint
from trainer.errors import InputError
from trainer.files import read_json, read_jsonl, write_json, write_jsonl, write_text
from trainer.gate.artefacts import output_hashes
from trainer.reading import read_node

IDENTITY = "gate.json"
MANIFEST = "online_gate_manifest.json"
COLD_START_MANIFEST = "gate_a_manifest.json"
SCHEMA = "intraskill-gate-identity-v1"


def claim(folder: Path, identity: Mapping[str, Any], manifest: str) -> None:
    """Make the folder this gate's. Raises InputError when another gate works or worked here.

    ``manifest`` is the name of the file with which the gate ends.
    """
    mark = fingerprint(identity)
    _require_gate(folder / "manifest.json")
    for path in (folder / IDENTITY, folder / manifest):
        if not path.exists():
            continue
        found = read_node(path).get("gate_fingerprint")
        if found.value != mark:
            raise found.error(
                "the folder holds another gate",
                "choose another output_dir, or restore the settings of that gate",
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


def finished_manifest(
    folder: Path, manifest: str, documents: Sequence[str]
) -> dict[str, Any] | None:
    """The manifest if the gate has ended and all ``documents`` it wrote are still whole."""
    if not all((folder / name).exists() for name in (manifest, *documents)):
        return None
    ended: dict[str, Any] = read_node(folder / manifest).mapping()
    if ended.get("status") != "complete":
        return None
    try:
        outputs = output_hashes({name: read_document(folder / name) for name in documents})
    except (InputError, TypeError, KeyError, AttributeError):  # damaged: it is written again
        return None
    return ended if outputs == ended.get("output") else None


def write_document(path: Path, value: object) -> None:
    """Publish a text, a JSON document or, from a list, JSON Lines."""
    if isinstance(value, str):
        write_text(path, value)
    elif isinstance(value, list):
        write_jsonl(path, value)
    else:
        write_json(path, value)


def read_document(path: Path) -> Any:
    """What ``write_document`` wrote. Raises InputError when it is not whole."""
    if path.suffix == ".json":
        return read_json(path)
    return list(read_jsonl(path)) if path.suffix == ".jsonl" else path.read_text(encoding="utf-8")
