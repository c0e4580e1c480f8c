"""The bodies of episodes in pack files beside the index: two zstd frames a trace (``pieces.py``).

The first holds what was said and is compressed so that it is quick to open, because a page of hits
opens fifty. Bodies of older packs, and lines that cannot be cut, are one frame.

``episodes/pack-000001.zst`` under the home only grows; a row holds pack, offset and size. The packs
are derived: the trace files of the runs remain the evidence, and the packs can be made again from
them. What a crash leaves behind the last committed row is never read.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import zstandard
from django.conf import settings

from intraskill_web.episodes.pieces import joined

PACK_SIZE = 512 * 2**20
LEVEL = 3
QUICK = -1  # opens in two thirds of the time and takes a sixth more
HEAD = struct.Struct(
    "<cI"
)  # of two frames: their sign, which begins no frame, and the first's size
TWO, READY = b"2", b"3"  # of READY the line can be answered as it is written
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


def compress(body: bytes, texts: bytes = b"", *, ready: bool = False) -> bytes:
    """A body as it is kept; with ``texts`` it is the rest of a line that was cut.

    ``ready``: an answer can carry the line as it is, without its being read.
    """
    if not hasattr(_local, "compressor"):
        _local.compressor = zstandard.ZstdCompressor(level=LEVEL)
        _local.quick = zstandard.ZstdCompressor(level=QUICK)
    frame = bytes(_local.compressor.compress(body))
    if not texts:
        return frame
    quick = bytes(_local.quick.compress(texts))
    return HEAD.pack(READY if ready else TWO, len(quick)) + quick + frame


def decompress(kept: bytes) -> bytes:
    """The line that was kept. Raises OSError on damage."""
    if not kept.startswith((TWO, READY)):
        return _opened(kept)
    try:
        return joined(_opened(kept, *_quick(kept)), _opened(kept, _quick(kept)[1]))
    except (ValueError, IndexError) as error:
        raise OSError(f"damaged texts: {error}") from error


def _quick(kept: bytes) -> tuple[int, int]:
    """Where the first of two frames lies. Raises OSError."""
    try:
        return HEAD.size, HEAD.size + HEAD.unpack_from(kept)[1]
    except struct.error as error:
        raise OSError(f"a damaged body: {error}") from error


def _opened(kept: bytes, start: int = 0, end: int | None = None) -> bytes:
    if not hasattr(_local, "decompressor"):
        _local.decompressor = zstandard.ZstdDecompressor()
    try:
        return bytes(_local.decompressor.decompress(memoryview(kept)[start:end]))
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
        return decompress(self._kept(place))

    def texts(self, place: Place) -> bytes:
        """What was said, with its index; empty where a body is whole. Raises OSError."""
        kept = self._kept(place)
        return _opened(kept, *_quick(kept)) if kept.startswith((TWO, READY)) else b""

    def ready(self, place: Place) -> bytes | None:
        """The line at ``place`` if it can be answered as it is. Raises OSError as ``read``."""
        kept = self._kept(place)
        return decompress(kept) if kept.startswith(READY) else None

    def _kept(self, place: Place) -> bytes:
        pack, at, size = place
        if pack not in self._open:
            self._open[pack] = os.open(
                f"{settings.INTRASKILL_HOME}/episodes/{pack_name(pack)}", os.O_RDONLY
            )
        kept = os.pread(self._open[pack], size, at)
        if len(kept) != size:
            raise OSError(f"{pack_name(pack)} ends before byte {at + size}")
        return kept


def read(place: Place) -> bytes:
    """The body at ``place``. Raises OSError when it is gone or damaged."""
    with Packs() as packs:
        return packs.read(place)
