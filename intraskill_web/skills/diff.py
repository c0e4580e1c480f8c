"""The difference of two skill versions: chunk by chunk, and inside a chunk word by word. Pure.

The unit is the logical chunk, not the file: added, retired, rewritten, moved, unchanged. Words are
compared in languages with spaces, characters in Chinese, so that one changed character does not
mark a whole line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Literal

Change = Literal["added", "retired", "rewritten", "moved", "unchanged"]
CRUMB = 1  # characters
PIECES = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]|[^\W\u3400-\u4dbf\u4e00-\u9fff]+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Piece:
    """Text that is kept (``=``), new (``+``) or gone (``-``)."""

    op: Literal["=", "+", "-"]
    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """A chunk in one version."""

    skill_id: str
    content: str
    content_sha256: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class ChunkChange:
    """What became of one chunk. ``old_place`` and ``new_place`` count from 1."""

    change: Change
    skill_id: str
    title: str
    old_place: int | None
    new_place: int | None
    pieces: list[Piece] = field(default_factory=list)
    unknown: bool = False  # one of the texts is not here, so there is nothing to compare


def compare(old: Sequence[Text], new: Sequence[Text]) -> list[ChunkChange]:
    """All changes from ``old`` to ``new``: in the new order, then the retired ones in theirs."""
    before = {text.skill_id: (place, text) for place, text in enumerate(old, 1)}
    after = {text.skill_id for text in new}
    stable = _in_order([t.skill_id for t in old if t.skill_id in after], [t.skill_id for t in new])
    changes = []
    for place, text in enumerate(new, 1):
        if text.skill_id not in before:
            pieces = [Piece("+", text.content)]
            unknown = not text.content_sha256
            changes.append(
                ChunkChange("added", text.skill_id, text.title, None, place, pieces, unknown)
            )
            continue
        old_place, was = before[text.skill_id]
        change: Change
        if was.content_sha256 != text.content_sha256:
            change, pieces = "rewritten", words(was.content, text.content)
        else:
            change = "unchanged" if text.skill_id in stable else "moved"
            pieces = [Piece("=", text.content)]
        unknown = not (text.content_sha256 and was.content_sha256)
        changes.append(
            ChunkChange(change, text.skill_id, text.title, old_place, place, pieces, unknown)
        )
    for place, text in enumerate(old, 1):
        if text.skill_id not in after:
            pieces = [Piece("-", text.content)]
            changes.append(ChunkChange("retired", text.skill_id, text.title, place, None, pieces))
    return changes


def words(old: str, new: str) -> list[Piece]:
    """The word difference (characters in Chinese), neighbouring pieces of one kind joined.

    One character that two rewritten stretches happen to share belongs to them, else a rewrite
    falls into crumbs.
    """
    a, b = PIECES.findall(old), PIECES.findall(new)
    blocks: list[list[str]] = []  # [text before, text after], alike where nothing changed
    for _op, a0, a1, b0, b1 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        blocks.append(["".join(a[a0:a1]), "".join(b[b0:b1])])
    pieces: list[Piece] = []
    for before, after in _joined(blocks):
        if before == after:
            pieces.append(Piece("=", before))
            continue
        if before:
            pieces.append(Piece("-", before))
        if after:
            pieces.append(Piece("+", after))
    return pieces


def _joined(blocks: Sequence[list[str]]) -> list[list[str]]:
    """The blocks with crumbs between two rewritten stretches added to these."""
    made: list[list[str]] = []
    for i, block in enumerate(blocks):
        crumb = (
            block[0] == block[1]
            and 0 < len(block[0].strip()) <= CRUMB  # a space between two words is none
            and 0 < i < len(blocks) - 1
            and all(_rewritten(side) for side in (blocks[i - 1], blocks[i + 1]))
        )
        if made and (crumb or made[-1][0] != made[-1][1]) and (crumb or block[0] != block[1]):
            made[-1] = [made[-1][0] + block[0], made[-1][1] + block[1]]
        else:
            made.append(list(block))
    return made


def _rewritten(block: Sequence[str]) -> bool:
    """Whether text was replaced by other text, not only added or taken away."""
    return block[0] != block[1] and all(len(text) > CRUMB for text in block)


def word_count(text: str) -> int:
    """Words of ``text``; in Chinese, characters. Marks and spaces do not count."""
    return sum(piece[0].isalnum() for piece in PIECES.findall(text))


def counts(changes: Sequence[ChunkChange]) -> Mapping[Change, int]:
    """How many chunks changed in which way."""
    found: dict[Change, int] = {
        "added": 0, "retired": 0, "rewritten": 0, "moved": 0, "unchanged": 0,
    }  # fmt: skip
    for change in changes:
        found[change.change] += 1
    return found


def _in_order(old: Sequence[str], new: Sequence[str]) -> set[str]:
    """The ids that kept their order: the longest common subsequence; the others moved."""
    kept = [name for name in new if name in set(old)]
    matcher = SequenceMatcher(None, list(old), kept, autojunk=False)
    return {name for a, _b, size in matcher.get_matching_blocks() for name in old[a : a + size]}
