"""Success cards: up to two lessons of a winning trace, read without the private goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from trainer.analyst.card_store import CardStore
from trainer.analyst.cards import error_row, input_fingerprint
from trainer.analyst.firewall import Firewall, gold_facts
from trainer.analyst.maker import AnalystFailed
from trainer.analyst.triage_queue import Case
from trainer.canonical import utc_now
from trainer.shop.catalogue import Catalogue

Row = dict[str, Any]
MOST_LESSONS = 2
TEXTS = (
    "mechanism",
    "applicable_when",
    "observed_evidence",
    "decisive_behavior",
    "generalizable_lesson",
)
#: what may travel on; what was observed is a matter of the one episode
TRAVELLING = ("mechanism", "applicable_when", "decisive_behavior", "generalizable_lesson")


class SuccessAnalyst(Protocol):
    """Reads one winning trace."""

    provenance: str

    def identity(self) -> Mapping[str, Any]: ...
    def lessons(self, trace: Mapping[str, Any]) -> tuple[list[Row], Row]:
        """Lessons and what they cost. Raises AnalystFailed and AnalysisEnded."""
        ...


def lesson_errors(lessons: object) -> list[str]:
    """Every way in which lessons break their contract."""
    if not isinstance(lessons, list) or not all(isinstance(item, dict) for item in lessons):
        return ["cards must be a list of objects"]
    errors = []
    if len(lessons) > MOST_LESSONS:
        errors.append(f"{len(lessons)} cards, at most {MOST_LESSONS} are allowed")
    for number, lesson in enumerate(lessons):
        errors += [
            f"cards[{number}].{name} must be a non-empty text"
            for name in TEXTS
            if not isinstance(lesson.get(name), str) or not lesson[name].strip()
        ]
        confidence = lesson.get("confidence")
        if isinstance(confidence, bool) or not isinstance(confidence, int | float):
            errors.append(f"cards[{number}].confidence must be a number")
        elif not 0 <= confidence <= 1:
            errors.append(f"cards[{number}].confidence must lie between 0 and 1")
    return errors


class SuccessMaker:
    """Files the success cards of a trace as one row; a lesson that leaks is left out of it."""

    def __init__(
        self,
        analyst: SuccessAnalyst,
        store: CardStore,
        firewall: Firewall,
        catalogue: Catalogue | None,
        *,
        resume: bool,
    ) -> None:
        self.analyst = analyst
        self.store = store
        self._firewall = firewall
        self._catalogue = catalogue
        self._resume = resume

    def fingerprint(self, case: Case) -> str:
        """What the cards of a trace are made from."""
        return input_fingerprint(
            case.trace,
            bank_sha256="",
            analyst=self.analyst.identity(),
            turns=1,
            wall=self._firewall.identity(),
        )

    def is_done(self, case: Case, *, retry_errors: bool) -> bool:
        """Whether the store has cards of this very input."""
        return self._resume and self.store.usable(
            case.source, self.fingerprint(case), retry_errors=retry_errors
        )

    def make(self, case: Case) -> None:
        """Read a trace and file what it teaches."""
        mark, provenance = self.fingerprint(case), self.analyst.provenance
        try:
            lessons, accounting = self.analyst.lessons(case.trace)
        except AnalystFailed as error:
            self.store.add(
                error_row(case.trace, error, input_fingerprint=mark, provenance=provenance)
            )
            return
        cards = [self._card(case, lesson, number) for number, lesson in enumerate(lessons, 1)]
        self.store.add(
            {
                "source_trajectory_id": case.source,
                "status": "ANALYZED",
                "cards": cards,
                "eligible_for_consolidation": any(card["eligible"] for card in cards),
                "provenance": provenance,
                "accounting": accounting,
                "created_at": utc_now(),
                "input_fingerprint": mark,
            }
        )

    def _card(self, case: Case, lesson: Row, number: int) -> Row:
        travelling = {name: lesson[name] for name in TRAVELLING}
        findings = self._firewall.card(travelling, gold_facts(case.trace, self._catalogue))
        return {
            "card_id": f"success-{case.source}-{number:02d}",
            "channel": "success",
            "source_trajectory_id": case.source,
            "task_id": case.task_id,
            **{name: lesson[name] for name in TEXTS},
            "related_chunk_ids": list(lesson.get("related_chunk_ids") or ()),
            "confidence": float(lesson["confidence"]),
            "firewall_findings": list(dict.fromkeys(finding.rule for finding in findings)),
            "eligible": not findings,
        }


def lessons_of(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """All cards of rows, in order of their ids."""
    cards = [card for row in rows for card in row.get("cards", ())]
    return sorted(cards, key=lambda card: str(card["card_id"]))
