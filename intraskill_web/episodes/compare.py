"""Two episodes beside each other: aligned by action, with the first divergence named. Pure.

Turns are equal when action and answer are. Up to the first turn that is not, they stand side by
side; behind it equal actions are brought to the same height, as a difference of texts is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Literal

from intraskill_web.episodes.turns import Turn

Kind = Literal["same", "page", "action", "only_a", "only_b"]
MATCHED = 400  # turns behind the divergence that are aligned by action; further ones by number


@dataclass(frozen=True, slots=True)
class Pair:
    """Two turns at one height. ``page``: the same action, another answer."""

    a: Turn | None
    b: Turn | None

    @property
    def kind(self) -> Kind:
        if self.a is None or self.b is None:
            return "only_b" if self.a is None else "only_a"
        if _action(self.a) != _action(self.b):
            return "action"
        return "same" if _answer(self.a) == _answer(self.b) else "page"

    @property
    def index(self) -> int:
        """The turn's number: of A, else of B."""
        turn = self.a or self.b
        return turn.index if turn else 0

    @property
    def number(self) -> str:
        """The turn's number in an outline: of either where they differ, else of whose it is."""
        if self.a and self.b:
            one, other = self.a.index, self.b.index
            return f"{one}" if one == other else f"{one}/{other}"
        return f"{self.index}{'A' if self.a else 'B'}"

    @property
    def anchor(self) -> str:
        """The turn's address: of A, else of B."""
        return f"{'t' if self.a else 'b'}{self.index}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """``divergence`` is the place of the first pair that is not the same; None where none is."""

    pairs: list[Pair]
    divergence: int | None


def compare(a: Sequence[Turn], b: Sequence[Turn]) -> Comparison:
    """Align two episodes."""
    alike = 0
    for one, other in zip(a, b, strict=False):
        if Pair(one, other).kind != "same":
            break
        alike += 1
    pairs = [Pair(one, other) for one, other in zip(a[:alike], b[:alike], strict=True)]
    pairs += _aligned(a[alike:], b[alike:])
    divergence = alike if len(pairs) > alike else None
    return Comparison(pairs, divergence)


def _aligned(a: Sequence[Turn], b: Sequence[Turn]) -> Iterator[Pair]:
    """The first pair as it is, then equal actions at one height."""
    if not a or not b:
        yield from (Pair(one, other) for one, other in zip_longest(a, b))
        return
    yield Pair(a[0], b[0])
    left, right = a[1 : MATCHED + 1], b[1 : MATCHED + 1]
    matcher = SequenceMatcher(None, [*map(_action, left)], [*map(_action, right)], autojunk=False)
    for _tag, i, i_end, j, j_end in matcher.get_opcodes():
        yield from (Pair(one, other) for one, other in zip_longest(left[i:i_end], right[j:j_end]))
    rest = zip_longest(a[MATCHED + 1 :], b[MATCHED + 1 :])
    yield from (Pair(one, other) for one, other in rest)


def _action(turn: Turn) -> tuple[str, str]:
    return (turn.name, turn.argument) if turn.name else ("", turn.content)


def _answer(turn: Turn) -> tuple[str, str, bool]:
    return (turn.observation, turn.problem, turn.done)
