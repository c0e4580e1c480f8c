"""What was proposed before, and what became of it: nothing is tried twice under another comma.

Two texts are near-duplicates when the sets of their character trigrams (folded, joined) overlap by
more than a share of their union. Only texts for the same place compare: additions with additions,
rewrites with rewrites of the same chunk, and both with the active chunks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.analyst.firewall.folding import letters_of
from trainer.canonical import fingerprint
from trainer.skills.types import Chunk

Row = Mapping[str, Any]
GRAM = 3
VERDICTS = {"selected": "won", "held": "won", "not_adopted": "undecided"}


def signature(operation: str, target: str | None, content: str) -> str:
    """The identity of a proposal; an empty target and none at all are the same."""
    return fingerprint({"operation": operation, "target": target or None, "content": content})


def similarity(left: str, right: str) -> float:
    """Overlap of two texts' trigrams, 0 to 1."""
    a, b = _grams(left), _grams(right)
    return len(a & b) / len(a | b) if a or b else 1.0


def _grams(text: str) -> frozenset[str]:
    joined = letters_of(text)
    size = min(GRAM, len(joined))
    return frozenset(joined[at : at + size] for at in range(len(joined) - size + 1)) - {""}


def outcome_of(row: Row) -> str:
    """What became of an earlier proposal, in words: ``tried in round-001, lost by 0.030``."""
    where = f"proposed at {row['proposal_checkpoint']}"
    result, effect = row.get("validation_result"), row.get("estimated_effect")
    if result is None:
        return f"{where}, not judged yet"
    if effect is None:
        return f"{where}, {result}"
    verdict = VERDICTS.get(result, "lost")
    return f"{where}, {verdict} as {result} with {effect:+.3f}"


def is_undecided(row: Row, most: int) -> bool:
    """Whether a gate that asks for evidence found some, but not enough, and did so at most
    ``most`` times: such a proposal was not refuted."""
    judged = len(row.get("validation_history", ()))
    effect = row.get("estimated_effect")
    hopeful = effect is not None and effect > 0
    return row.get("validation_result") == "not_adopted" and hopeful and judged <= most


@dataclass(frozen=True, slots=True)
class History:
    """The ledger of earlier rounds and the chunks that are active now.

    The very same proposal may be made again after it was undecided, ``retries`` times at most.
    """

    rows: Sequence[Row]
    active: Sequence[Chunk]
    threshold: float = 0.8
    retries: int = 0

    def objections(self, operation: str, target: str | None, content: str) -> list[str]:
        """Why a text must not be proposed (again), with what happened the last time."""
        return [
            *self._from_ledger(operation, target, content),
            *self._from_active(content),
        ]

    def _from_ledger(self, operation: str, target: str | None, content: str) -> list[str]:
        mine = signature(operation, target, content)
        found = []
        for row in (row for row in self.rows if row.get("content")):
            if signature(row["operation"], row["target_chunk_id"], row["content"]) == mine:
                if is_undecided(row, self.retries):
                    return []
                found.append(f"the same proposal as {row['candidate_id']}: {outcome_of(row)}")
            elif self._same_place(row, operation, target):
                share = similarity(row["content"], content)
                if share > self.threshold:
                    found.append(
                        f"nearly the same as {row['candidate_id']} (overlap {share:.2f}): "
                        f"{outcome_of(row)}"
                    )
        return found

    def _from_active(self, content: str) -> list[str]:
        found = []
        for chunk in self.active:
            share = similarity(chunk.content, content)
            if chunk.content == content or share > self.threshold:
                found.append(f"says what {chunk.skill_id} says already (overlap {share:.2f})")
        return found

    @staticmethod
    def _same_place(row: Row, operation: str, target: str | None) -> bool:
        return row["operation"] == operation and (row["target_chunk_id"] or None) == (
            target or None
        )
