"""What the review panel of a gate or a chunk needs."""

from __future__ import annotations

from typing import Any

from intraskill_web.core.access import may_operate
from intraskill_web.review.services import Subject
from intraskill_web.review.state import LABELS


def panel(subject: Subject, reader: Any) -> dict[str, Any]:
    """The context of ``review/_panel.html``."""
    return {
        "review": subject.standing(),
        "review_gate": subject.gate,
        "may_review": may_operate(reader),
        "label_words": [(value, str(words)) for value, words in LABELS.items()],
    }
