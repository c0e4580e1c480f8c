"""What an import found: what is absent, and which recorded hashes its files kept."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from gzip import BadGzipFile

from trainer.errors import InputError

# What reading a document raises that is JSON of another shape, that is cut or overwritten, or that
# is no file or nobody's to read. Other faults of the system, as a full disk, end the import.
DAMAGE = (
    *(AttributeError, LookupError, TypeError, ValueError, EOFError, BadGzipFile, zlib.error),
    *(IsADirectoryError, NotADirectoryError, PermissionError),
)


@dataclass(slots=True)
class Report:
    """``missing`` names absent files and facts; ``verified`` counts hashes that were right."""

    missing: list[str] = field(default_factory=list)
    verified: int = 0
    mismatched: list[dict[str, str]] = field(default_factory=list)

    def absent(self, what: str) -> None:
        """Note something that the folder does not hold."""
        if what not in self.missing:
            self.missing.append(what)

    def check(self, path: str, found: str, recorded: str, what: str = "hash") -> bool:
        """Compare a hash with the one that is on record for it."""
        if found == recorded:
            self.verified += 1
            return True
        self.wrong(path, f"{what} is {found}, recorded was {recorded}")
        return False

    def wrong(self, path: str, problem: str) -> None:
        """Note a file that is not what it says."""
        told = {"path": path, "problem": problem}
        if told not in self.mismatched:
            self.mismatched.append(told)

    @contextmanager
    def part(self, path: str) -> Iterator[None]:
        """A part of the import that rests on one file: damage is noted and the rest goes on."""
        try:
            yield
        except InputError as error:
            where = f"{error.field}: " if error.field else ""
            self.wrong(path, f"{where}{error.reason}")
        except DAMAGE as error:
            self.wrong(path, f"holds something else than it should: {error!r}")
