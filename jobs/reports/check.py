"""An export opened again: does it hold what its manifest says, and do its numbers hold together?

Hashes first, then pages (links, anchors, ids, languages, alternative texts), then numbers:
differences are computed again from the task outcomes, gates are fitted again from their
observations. Nothing of the database is used, so an export can be checked anywhere.
"""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jobs.reports.check_numbers import number_problems
from jobs.reports.check_pages import page_problems
from jobs.reports.library import dumps
from jobs.reports.manifest import NAME, SCHEMA, files_of, own_hash
from trainer.errors import InputError
from trainer.files import parse_json

Problem = dict[str, str]


def check_report(path: Path) -> dict[str, Any]:
    """``{ok, problems, files, checks}`` of an export: a folder, or the archive of one.

    Raises InputError when there is no export at ``path``.
    """
    if path.is_file() and path.suffix == ".zip":
        with tempfile.TemporaryDirectory() as folder:
            return _check(_unpacked(path, Path(folder)))
    if not path.is_dir():
        raise InputError("is no folder and no .zip", file=path)
    return _check(path)


def _unpacked(path: Path, target: Path) -> Path:
    """The export of an archive. Raises InputError for an archive that would write elsewhere."""
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if not (target / name).resolve().is_relative_to(target.resolve()):
                    raise InputError("holds a path outside itself", file=path, value=name)
            archive.extractall(target)
    except zipfile.BadZipFile as error:
        raise InputError(f"is a damaged archive: {error}", file=path) from error
    roots = [p for p in target.iterdir() if p.is_dir()]
    return roots[0] if len(roots) == 1 and not (target / NAME).exists() else target


def _check(folder: Path) -> dict[str, Any]:
    problems = list(_hash_problems(folder))
    sound = not problems
    checks: dict[str, Any] = {}
    if sound:  # pages and numbers of a damaged export would only repeat the damage
        manifest = parse_json((folder / NAME).read_bytes())
        problems += page_problems(folder, manifest["languages"])
        found, checks = number_problems(folder)
        problems += found
    return {
        "ok": not problems,
        "problems": problems,
        "files": len(files_of(folder)) + 1,
        "checks": checks,
    }


def _hash_problems(folder: Path) -> Iterator[Problem]:
    path = folder / NAME
    if not path.is_file():
        yield _problem(NAME, "is missing")
        return
    data = path.read_bytes()
    try:
        manifest = parse_json(data)
        files = dict(manifest["files"])
        stated = manifest["manifest_sha256"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        yield _problem(NAME, f"cannot be read: {error}")
        return
    if manifest.get("schema_version") != SCHEMA:
        yield _problem(NAME, f"has schema {manifest.get('schema_version')!r}, expected {SCHEMA!r}")
    if own_hash(manifest) != stated or dumps(manifest).encode() != data:
        yield _problem(NAME, "was changed: it does not match the hash it states of itself")
        return
    present = set(files_of(folder))
    for name in sorted(present - files.keys()):
        yield _problem(name, "is not in the manifest")
    for name, entry in files.items():
        if name not in present:
            yield _problem(name, "is missing")
            continue
        if (folder / name).is_symlink():
            yield _problem(name, "is a link, not a file")
            continue
        content = (folder / name).read_bytes()
        found = hashlib.sha256(content).hexdigest()
        if found != entry["sha256"]:
            yield _problem(name, f"hash is {found}, recorded was {entry['sha256']}")
        elif len(content) != entry["bytes"]:
            yield _problem(name, f"has {len(content)} bytes, recorded were {entry['bytes']}")


def _problem(file: str, problem: str) -> Problem:
    return {"file": file, "problem": problem}
