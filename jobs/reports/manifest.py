"""``build-manifest.json``: what an export is, and the SHA-256 of every other file in it.

The manifest holds the hash of itself without that hash, and has one way to be written, so that a
change of any byte anywhere is found.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jobs.reports.library import dumps
from trainer.canonical import fingerprint

NAME = "build-manifest.json"
SCHEMA = "intraskill-report-v1"
IGNORED = (".git",)  # what publishing adds


def manifest_bytes(head: Mapping[str, Any], files: Mapping[str, bytes]) -> bytes:
    """The manifest of ``files`` (path → content)."""
    document = {
        "schema_version": SCHEMA,
        **head,
        "files": {
            name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
            for name, data in sorted(files.items())
        },
    }
    return dumps({**document, "manifest_sha256": fingerprint(document)}).encode()


def own_hash(document: Mapping[str, Any]) -> str:
    """The hash that a manifest must state of itself."""
    return fingerprint({k: v for k, v in document.items() if k != "manifest_sha256"})


def files_of(folder: Path) -> list[str]:
    """Every file of an export but the manifest, as the manifest names them."""
    found = (p.relative_to(folder) for p in folder.rglob("*") if p.is_file() or p.is_symlink())
    return sorted(p.as_posix() for p in found if p.as_posix() != NAME and p.parts[0] not in IGNORED)
