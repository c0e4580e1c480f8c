"""One item of a checklist: what was looked at, whether it holds, and how to mend it.

Used by the refusals before a launch (training.md §6.1), by the offline preflight (§7) and by the
page that shows them. A check that could not be made on this machine is ``skipped``: it says why and
never counts as passed. A ``warning`` holds, but costs something that a person should know.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

State = Literal["passed", "warning", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check. ``remedy`` is set exactly when there is something to do."""

    name: str
    state: State
    detail: str
    remedy: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The check as ``python -m trainer check --json`` prints it."""
        return {
            "name": self.name,
            "ok": self.state in ("passed", "warning"),
            "state": self.state,
            "detail": self.detail,
            "remedy": self.remedy,
        }


def passed(name: str, detail: str) -> Check:
    """A check that holds."""
    return Check(name, "passed", detail)


def failed(name: str, detail: str, remedy: str) -> Check:
    """A check that does not hold; a launch must not start."""
    return Check(name, "failed", detail, remedy)


def warning(name: str, detail: str, remedy: str) -> Check:
    """A check that holds well enough to start, and what would be better."""
    return Check(name, "warning", detail, remedy)


def skipped(name: str, detail: str, remedy: str) -> Check:
    """A check that this machine cannot make, and what would make it possible."""
    return Check(name, "skipped", detail, remedy)


def require(name: str, holds: bool, detail: str, remedy: str) -> Check:
    """``passed`` or ``failed``, with the same detail."""
    return passed(name, detail) if holds else failed(name, detail, remedy)


def failures(checks: Iterable[Check]) -> list[Check]:
    """The checks that do not hold."""
    return [check for check in checks if check.state == "failed"]


def report(checks: Iterable[Check], **identity: Any) -> dict[str, Any]:
    """The document of a whole checklist: ``ready`` means that nothing failed."""
    items = list(checks)
    return {
        "ready": not failures(items),
        "checks": [check.to_json() for check in items],
        **identity,
    }
