"""What a price annotation may say, and the check that it does (environment.md §1.7.4).

An annotation is made by a language model from one instruction. It is believed only as far as it
can be checked: a ceiling must be backed by a verbatim piece of the text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from trainer.files import read_json
from trainer.reading import Node
from trainer.shop.raw import finite_number

Kind = Literal[
    "hard_upper", "approximate_upper", "no_budget", "lower_only", "non_total_price", "ambiguous"
]
KINDS: tuple[str, ...] = get_args(Kind)
WITH_AMOUNT = frozenset({"hard_upper", "approximate_upper"})
TOLERANCE = 1.10

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "task_id": {"type": "integer"},
        "kind": {"type": "string", "enum": list(KINDS)},
        "amount": {"type": ["number", "null"]},
        "evidence": {"type": "string"},
    },
    "required": ["task_id", "kind", "amount", "evidence"],
    "additionalProperties": False,
}


_REMEDY = "Make the file again with `shop annotate`"


class AnnotationError(ValueError):
    """The model's answer breaks the contract; ``str`` says how."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """A checked annotation of one task."""

    task_id: int
    kind: str
    amount: float | None
    evidence: str

    @property
    def ceiling(self) -> float | None:
        """``price_upper`` of the task: the amount, ten percent more when it is approximate."""
        if self.amount is None:
            return None
        if self.kind == "approximate_upper":
            return round(self.amount * TOLERANCE, 8)
        return self.amount

    def to_record(self) -> dict[str, Any]:
        return {
            "task_id": self.task_id,
            "kind": self.kind,
            "amount": self.amount,
            "evidence": self.evidence,
        }


def read_annotation(answer: str | Mapping[str, Any], task_id: int, text: str) -> Annotation:
    """Check a model's answer about ``text``. Raises AnnotationError."""
    if isinstance(answer, str):
        try:
            answer = json.loads(answer)
        except json.JSONDecodeError as error:
            raise AnnotationError(f"not JSON: {error}") from error
    if not isinstance(answer, Mapping) or set(answer) != set(SCHEMA["required"]):
        raise AnnotationError(f"must hold exactly {SCHEMA['required']}")
    kind, amount, evidence = answer["kind"], answer["amount"], answer["evidence"]
    if answer["task_id"] != task_id:
        raise AnnotationError(f"task_id must be {task_id}, is {answer['task_id']!r}")
    if kind not in KINDS:
        raise AnnotationError(f"unknown kind {kind!r}")
    if not isinstance(evidence, str) or evidence not in text:
        raise AnnotationError("evidence must be a verbatim piece of the instruction")
    if (kind == "no_budget") == bool(evidence):
        raise AnnotationError("evidence is empty exactly for no_budget")
    if kind in WITH_AMOUNT:
        if not _positive(amount):
            raise AnnotationError(f"{kind} needs a positive amount, has {amount!r}")
    elif amount is not None:
        raise AnnotationError(f"{kind} has no amount, has {amount!r}")
    return Annotation(task_id, kind, amount, evidence)


def _positive(amount: object) -> bool:
    return finite_number(amount) and amount > 0


def load_annotations(path: Path) -> tuple[dict[int, Annotation], dict[str, Any]]:
    """Annotations by task id, and who made them. Raises InputError naming what is wrong.

    The texts are not at hand here; that evidence is verbatim was checked when the file was made.
    """
    document = Node(read_json(path), path)
    annotations: dict[int, Annotation] = {}
    for row in document["annotations"]:
        task_id = row["task_id"].integer(least=0)
        if task_id in annotations:
            raise row["task_id"].error("the task is annotated twice", _REMEDY)
        try:
            annotations[task_id] = read_annotation(row.mapping(), task_id, row["evidence"].string())
        except AnnotationError as error:
            raise row.error(str(error), _REMEDY) from error
    return annotations, document["annotator"].mapping()
