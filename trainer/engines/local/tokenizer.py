"""Words to token ids and back, and where the special tokens stand.

An episode is one sequence::

    <s> prompt words … first page … <act> turn words <end> page words … <act> turn words <end> …

``<s>`` and ``<act>`` belong to the environment, ``<end>`` to the policy. A word outside the
vocabulary is read as ``<unk>``, and so is a special word inside a text: a chunk cannot end a turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trainer.canonical import fingerprint
from trainer.errors import InputError

PAD, START, ACT, END, UNKNOWN = "<pad>", "<s>", "<act>", "<end>", "<unk>"
SPECIAL = (PAD, START, ACT, END, UNKNOWN)


class WordTokenizer:
    """A closed vocabulary; the position of a word is its id and ``<pad>`` is 0."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        """Raises InputError when a word repeats or the special words do not come first."""
        self.words = tuple(vocabulary)
        if self.words[: len(SPECIAL)] != SPECIAL:
            raise InputError(
                f"a vocabulary begins with {' '.join(SPECIAL)}",
                field="vocabulary",
                value=self.words[: len(SPECIAL)],
            )
        if len(set(self.words)) != len(self.words):
            raise InputError("a word repeats", field="vocabulary")
        self._ids = {word: number for number, word in enumerate(self.words) if word not in SPECIAL}
        self.pad, self.start, self.act, self.end, self.unknown = range(len(SPECIAL))

    def __len__(self) -> int:
        return len(self.words)

    @property
    def sha256(self) -> str:
        """Identity of the vocabulary: the fingerprint of the word list."""
        return fingerprint(list(self.words))

    def encode(self, text: str) -> list[int]:
        """Ids of the words of ``text``, which are separated by blanks."""
        return [self._ids.get(word, self.unknown) for word in text.split()]

    def decode(self, ids: Iterable[int]) -> str:
        """The words of ``ids``, separated by single blanks."""
        return " ".join(self.words[number] for number in ids)

    def prompt(self, texts: Iterable[str]) -> list[int]:
        """Everything before the first turn."""
        return [self.start, *self._joined(texts), self.act]

    def conversation(self, messages: Iterable[tuple[str, str]]) -> list[int]:
        """Everything before the next turn, from (role, text) pairs; earlier turns are ended."""
        ids = [self.start]
        for role, text in messages:
            words = self.encode(text)
            ids += [self.act, *words, self.end] if role == "assistant" else words
        return [*ids, self.act]

    def following(self, texts: Iterable[str]) -> list[int]:
        """What the environment adds after a turn, up to the next turn."""
        return [*self._joined(texts), self.act]

    def _joined(self, texts: Iterable[str]) -> list[int]:
        return [number for text in texts for number in self.encode(text)]
