"""Reads a catalogue archive: a JSON array of product records, plain or gzip, one record at a time.

The array is decoded while it is read, so the archive never stands in memory as a whole, and the
hash covers the decompressed bytes. A damaged archive is one error that names the file and the
record.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from trainer.errors import InputError
from trainer.files import refuse_constant

#: the published data set's decompressed JSON, before and after cleaning (environment.md §1.1)
PUBLISHED_SHA256 = {
    "published-raw": "57b10950a0064d16c81535a1d764a75879a508d250dde8a2a1787c5e6045559f",
    "published-cleaned": "00d5285b6aca5ade54465e1522821c869c1d5ff5cae6385cea3889a46bb26975",
}

_CHUNK = 1 << 20
#: characters of one record; the longest published one has some ten thousand
_LONGEST_RECORD = 1 << 24
#: only an escape can bring half of a surrogate pair into a text that was UTF-8
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_SPACE = " \t\r\n"
_REMEDY = "Fetch the archive again and compare its SHA-256"


class Archive:
    """The records of one archive. ``sha256`` (decompressed JSON) is known after iterating."""

    def __init__(self, path: Path, *, expected_sha256: str | None = None) -> None:
        self.path = path
        self.sha256 = ""
        self._expected = expected_sha256

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield records in file order. Raises InputError for damage or an unexpected hash."""
        digest = hashlib.sha256()
        number = 0
        with self._opened() as stream:
            try:
                for record in self._records(stream, digest.update):
                    yield record
                    number += 1
            except (EOFError, OSError, zlib.error, UnicodeDecodeError) as error:
                raise InputError(
                    f"damaged archive: {error}",
                    file=self.path,
                    field=f"[{number}]",
                    remedy=_REMEDY,
                ) from error
        self.sha256 = digest.hexdigest()
        if self._expected not in (None, self.sha256):
            raise InputError(
                f"the data is not what was expected: SHA-256 must be {self._expected}",
                file=self.path,
                value=self.sha256,
                remedy=_REMEDY,
            )

    def _opened(self) -> BufferedIOBase:
        try:
            with self.path.open("rb") as handle:
                zipped = handle.read(2) == b"\x1f\x8b"
            return gzip.open(self.path, "rb") if zipped else self.path.open("rb")
        except FileNotFoundError as error:
            raise InputError(
                "no such file", file=self.path, remedy="Name a catalogue file, .json or .json.gz"
            ) from error
        except OSError as error:
            raise InputError(
                f"cannot be opened: {error.strerror}",
                file=self.path,
                remedy="Name a catalogue file, .json or .json.gz, that may be read",
            ) from error

    def _records(
        self, stream: BufferedIOBase, seen: Callable[[bytes], None]
    ) -> Iterator[dict[str, Any]]:
        buffer = _Buffer(stream, seen, self.path)
        if buffer.next_char() != "[":
            raise buffer.broken(0, "a catalogue is a JSON array of products")
        buffer.skip()
        number = 0
        while buffer.next_char() != "]":
            record = buffer.value(number)
            if not isinstance(record, dict):
                raise InputError(
                    "a product record must be an object",
                    file=self.path,
                    field=f"[{number}]",
                    value=type(record).__name__,
                    remedy=_REMEDY,
                )
            yield record
            number += 1
            if buffer.next_char() == ",":
                buffer.skip()
                if buffer.next_char() == "]":
                    raise buffer.broken(number, "expected a record after ','")
            elif buffer.next_char() != "]":
                raise buffer.broken(number, "expected ',' or ']'")
        buffer.skip()
        if buffer.next_char():
            raise buffer.broken(number, "text after the end of the array")


class _Buffer:
    """Decoded text that grows as it is needed."""

    def __init__(self, stream: BufferedIOBase, seen: Callable[[bytes], None], path: Path) -> None:
        self._stream = stream
        self._seen = seen
        self._path = path
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._json = json.JSONDecoder(parse_constant=refuse_constant)
        self._text = ""
        self._at = 0

    def broken(self, number: int, reason: str) -> InputError:
        return InputError(reason, file=self._path, field=f"[{number}]", remedy=_REMEDY)

    def _grow(self) -> bool:
        data = self._stream.read(_CHUNK)
        self._seen(data)
        self._text = self._text[self._at :] + self._decode(data, final=not data)
        self._at = 0
        return bool(data)

    def next_char(self) -> str:
        """The next character that is not blank, without taking it; empty at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._grow():
                return ""

    def skip(self) -> None:
        self._at += 1

    def value(self, number: int) -> Any:
        """Decode the value that starts here."""
        while True:
            try:
                value, end = self._json.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                longer = len(self._text) - self._at < _LONGEST_RECORD and self._grow()
                if not longer:
                    raise self.broken(number, f"broken record: {error.msg}") from error
            except (ValueError, RecursionError) as error:
                raise self.broken(number, f"broken record: {error}") from error
            else:
                if _SURROGATE.search(self._text, self._at, end) and not _is_encodable(value):
                    raise self.broken(number, "broken record: half of a surrogate pair")
                self._at = end
                return value


def _is_encodable(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
