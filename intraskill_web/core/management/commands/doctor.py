"""``manage.py doctor``: is everything of this instance in order, and if not, what to do."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from intraskill_web.core.commands import JsonCommand
from intraskill_web.core.doctor import examine


class Command(JsonCommand):
    help = __doc__ or ""

    def run(self, **options: Any) -> bool:
        """Print every finding; False when one of them is not ok."""
        findings = examine()
        ok = all(finding.ok for finding in findings)
        lines = [
            f"{'ok  ' if f.ok else 'FAIL'} {f.name}: {f.detail}"
            + (f". {f.remedy}" if not f.ok else "")
            for f in findings
        ]
        self.emit({"ok": ok, "checks": [asdict(f) for f in findings]}, "\n".join(lines))
        return ok
