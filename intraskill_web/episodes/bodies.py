"""The bodies of episodes: zstd frames in pack files beside the index, one frame a trace.

``episodes/pack-000001.zst`` under the home only grows; a row holds pack, offset and size. The packs
are derived: the trace files of the runs remain the evidence, and the packs can be made again from
them. What a crash leaves behind the last committed row is never read.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import zstandard
from django.conf import settings

PACK_SIZE = 512 * 2**20
LEVEL = 3
_local = threading.local()


class Place(NamedTuple):
    """Where a frame lies."""

    pack: int
    at: int
    size: int


def folder() -> Path:
    """Where the packs are."""
    return Path(settings.INTRASKILL_HOME) / "episodes"


def pack_name(pack: int) -> str:
    """The name of a pack's file."""
    return f"pack-{pack:06d}.zst"


def pack_file(pack: int) -> Path:
    """The file of a pack."""
    return folder() / pack_name(pack)


def compress(body: bytes) -> bytes:
    """One frame that knows the size of what it holds."""
    if not hasattr(_local, "compressor"):
        _local.compressor = zstandard.ZstdCompressor(level=LEVEL)
    return bytes(_local.compressor.compress(body))


def decompress(frame: bytes) -> bytes:
    """What a frame holds. Raises OSError on damage."""
    if not hasattr(_local, "decompressor"):
        _local.decompressor = zstandard.ZstdDecompressor()
    try:
        return bytes(_local.decompressor.decompress(frame))
    except zstandard.ZstdError as error:
        raise OSError(f"a damaged frame: {error}") from error


def append(frames: Sequence[bytes]) -> list[Place]:
    """Append frames to the newest pack and wait until they are on disk."""
    folder().mkdir(parents=True, exist_ok=True)
    with (folder() / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        pack = max((int(p.stem[5:]) for p in folder().glob("pack-*.zst")), default=1)
        if pack_file(pack).exists() and pack_file(pack).stat().st_size >= PACK_SIZE:
            pack += 1
        with pack_file(pack).open("ab") as handle:
            at = handle.seek(0, os.SEEK_END)
            places = []
            for frame in frames:
                places.append(Place(pack, at, len(frame)))
                at += len(frame)
            handle.write(b"".join(frames))
            handle.flush()
            os.fdatasync(handle.fileno())
    return places


class Packs:
    """Packs that stay open while many bodies are read."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}

    def __enter__(self) -> Packs:
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            os.close(self._open.popitem()[1])

    def read(self, place: Place) -> bytes:
        """The body at ``place``. Raises OSError when it is gone or damaged."""
        pack, at, size = place
        if pack not in self._open:
            self._open[pack] = os.open(
                f"{settings.INTRASKILL_HOME}/episodes/{pack_name(pack)}", os.O_RDONLY
            )
        frame = os.pread(self._open[pack], size, at)
        if len(frame) != size:
            raise OSError(f"{pack_name(pack)} ends before byte {at + size}")
        return decompress(frame)


def read(place: Place) -> bytes:
    """The body at ``place``. Raises OSError when it is gone or damaged."""
    with Packs() as packs:
        return packs.read(place)
