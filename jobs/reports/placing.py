"""An export made in memory comes to stand on disk: whole or not at all, its archive beside it."""

from __future__ import annotations

import io
import json
import os
import shutil
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.reports.manifest import NAME
from trainer.errors import InputError


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export came to. ``zip`` is the archive beside the folder, if one was asked for."""

    folder: Path
    files: int
    bytes: int
    manifest_sha256: str
    seconds: float
    zip: Path | None = None

    def to_record(self) -> dict[str, Any]:
        """The keys of ``export_report --json``."""
        return {
            "folder": str(self.folder),
            "files": self.files,
            "bytes": self.bytes,
            "manifest_sha256": self.manifest_sha256,
            "seconds": round(self.seconds, 3),
            "zip": None if self.zip is None else str(self.zip),
        }


def finish(out: Path, files: Mapping[str, bytes], *, archive: bool, began: float) -> Exported:
    """Put the files in place, and the archive beside them."""
    _place(out, files)
    packed = _zip(out, files) if archive else None
    return Exported(
        folder=out,
        files=len(files),
        bytes=sum(map(len, files.values())),
        manifest_sha256=_stated(files[NAME]),
        seconds=time.monotonic() - began,
        zip=packed,
    )


def refuse_overwriting(out: Path, force: bool) -> None:
    """Raise InputError unless ``out`` is free, or an export that may be replaced."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not (out / NAME).is_file():
        raise InputError(
            "exists and is no export", file=out, remedy="Choose another --out; nothing was changed"
        )
    if not force:
        raise InputError("holds an export already", file=out, remedy="Use --force to replace it")


def _stated(manifest: bytes) -> str:
    return str(json.loads(manifest)["manifest_sha256"])


def _place(out: Path, files: Mapping[str, bytes]) -> None:
    """Write beside ``out`` and rename: a reader never sees half an export."""
    out.parent.mkdir(parents=True, exist_ok=True)
    fresh = out.with_name(f".{out.name}.{os.getpid()}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        for name, data in files.items():
            path = fresh / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        if out.exists():
            former = out.with_name(f".{out.name}.{os.getpid()}.old")
            out.rename(former)
            fresh.rename(out)
            shutil.rmtree(former)
        else:
            fresh.rename(out)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _zip(out: Path, files: Mapping[str, bytes]) -> Path:
    """The export as an archive beside the folder; equal exports give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, data in sorted(files.items()):
            info = zipfile.ZipInfo(f"{out.name}/{name}", (1980, 1, 1, 0, 0, 0))
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    path = out.with_name(f"{out.name}.zip")
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    partial.write_bytes(buffer.getvalue())
    partial.replace(path)
    return path
