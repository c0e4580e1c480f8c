"""A launcher's output, read by somebody else on its way."""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO


class Overheard:
    """Writes to ``output`` and hands every whole line to ``listen``, whose OSError is said once."""

    def __init__(self, output: TextIO, listen: Callable[[str], object]) -> None:
        self._output, self._listen = output, listen
        self._rest = ""
        self._said = False

    def write(self, text: str) -> int:
        """Pass ``text`` on."""
        written = self._output.write(text)
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            try:
                self._listen(line)
            except OSError as error:  # the job's output is not held up by it
                if not self._said:
                    self._said = True
                    self._output.write(f"[ray] its figures could not be kept: {error}\n")
        return written

    def flush(self) -> None:
        """Pass it on."""
        self._output.flush()
