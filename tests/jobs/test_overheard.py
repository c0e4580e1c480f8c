"""A job's output is shown as it comes and heard line by line."""

from __future__ import annotations

import io

from jobs.launchers.overheard import Overheard


def test_lines_are_heard_once_they_are_whole() -> None:
    shown, heard = io.StringIO(), list[str]()
    output = Overheard(shown, heard.append)
    for part in ("one\ntw", "o", "\nthree"):
        output.write(part)
    assert (shown.getvalue(), heard) == ("one\ntwo\nthree", ["one", "two"])


def test_figures_that_cannot_be_kept_hold_no_output_up() -> None:
    def full(_line: str) -> None:
        raise OSError(28, "No space left on device")

    shown = io.StringIO()
    output = Overheard(shown, full)
    output.write("one\ntwo\n")
    output.write("three\n")
    assert shown.getvalue().count("could not be kept: [Errno 28]") == 1
    assert shown.getvalue().endswith("three\n")
