"""Demonstrations as token sequences: what the warm start learns from.

A shopper reads some chunks and a task and plays it on the real shop. Which chunks are read is
drawn anew each time, so that texts and deeds are seen in every combination: none at all, any of the
habits in any wording, chunks that call for nothing, and chunks of words that mean nothing here.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainer.engines.local.tokenizer import WordTokenizer
from trainer.shop.mini.demonstrator import draw_habits
from trainer.shop.mini.episodes import (
    Demonstration,
    Slip,
    demonstrate,
    solver,
)
from trainer.shop.mini.habits import HABITS, HASTE, INERT
from trainer.shop.mini.language import MiniLanguage
from trainer.shop.mini.tasks import FIRST_POOL_ID, draw_tasks, task_key
from trainer.shop.mini.words import CATEGORIES, COLOURS, PROSE, RANKS, SIZES, VERBS
from trainer.shop.mini.world import DraftWorld
from trainer.shop.types import Task

BARE_SHARE = 0.2  # demonstrations that read no chunk at all
VAGUE_SHARE = 0.25  # vague wordings among the chunks that call for a habit
SECOND_WORDING_SHARE = 0.05  # a habit called for twice, in two wordings
NONSENSE_SHARE = 0.15  # demonstrations that also read a chunk of random words
WRAPPED_SHARE = 0.15  # chunks whose sentence stands between a few random words
INERT_SHARE = 0.25
READ_SHARE = 0.5
SLIP_SHARE = 0.04  # demonstrations with one mistaken turn


@dataclass(frozen=True, slots=True)
class TokenisedDemonstration:
    """One episode. ``shown`` is 1 on the shopper's own tokens, which are learnt in full."""

    tokens: tuple[int, ...]
    shown: tuple[int, ...]
    reward: float


def draw_chunks(rng: random.Random) -> list[str]:
    """The chunk texts that one shopper reads, in random order."""
    if rng.random() < BARE_SHARE:
        return []
    texts = []
    for habit in HABITS:
        if rng.random() < READ_SHARE:
            texts.append(rng.choice(habit.vague if rng.random() < VAGUE_SHARE else habit.firm))
            if rng.random() < SECOND_WORDING_SHARE:
                texts.append(rng.choice(habit.firm))
    texts += [text for text in INERT if rng.random() < INERT_SHARE]
    if rng.random() < READ_SHARE:
        texts.append(rng.choice(HASTE))
    if rng.random() < NONSENSE_SHARE:
        texts.append(" ".join(rng.choices((*PROSE, "xyzzy"), k=rng.randint(3, 9))))
    rng.shuffle(texts)
    return texts


def wrap(text: str, rng: random.Random) -> str:
    """Now and then, ``text`` inside a longer chunk: what surrounds a sentence does not matter."""
    if rng.random() >= WRAPPED_SHARE:
        return text
    before, after = rng.choices(PROSE, k=rng.randint(0, 4)), rng.choices(PROSE, k=rng.randint(0, 4))
    return " ".join((*before, text, *after))


def draw_slip(rng: random.Random) -> Slip | None:
    """Rarely, one mistaken early turn, so that ``error`` is known and recovered from."""
    if rng.random() >= SLIP_SHARE:
        return None
    when = rng.randint(1, 5)
    words = rng.choices((*VERBS, *RANKS[:3], *COLOURS, *SIZES, *CATEGORIES), k=rng.randint(1, 3))
    if words[0] == "search" or words in (["open"], ["buy"]):
        words.insert(0, "select")  # never an action that a shopper could have meant
    return lambda turn: words if turn == when else None


def tokenise_demonstration(
    tokenizer: WordTokenizer, task: Task, texts: Sequence[str], played: Demonstration
) -> TokenisedDemonstration:
    """The episode as the policy would see it. Slips are shown, but not learnt."""
    tokens: list[int] = []
    shown: list[int] = []
    for number, turn in enumerate(played.turns):
        if number == 0:
            head = [text for _, text in MiniLanguage().prompt(task, texts)]
            page = tokenizer.prompt([*head, turn.page])
        else:
            page = tokenizer.following([turn.page])
        words = [*tokenizer.encode(" ".join(turn.words)), tokenizer.end]
        tokens += [*page, *words]
        shown += [0] * len(page) + [int(turn.meant)] * len(words)
    reward = 0.0 if played.result is None else played.result.reward
    return TokenisedDemonstration(tuple(tokens), tuple(shown), reward)


def draw_pool(world: DraftWorld, known: Sequence[Task], size: int, seed: int) -> list[Task]:
    """``size`` winnable tasks of which none is among ``known``, the tasks of the splits."""
    exclude = {task_key(task) for task in known}
    stream = draw_tasks(
        list(world.catalogue.products.values()),
        solver(world),
        seed=seed,
        first_id=FIRST_POOL_ID,
        exclude=exclude,
    )
    return [next(stream) for _ in range(size)]


def demonstrations(
    world: DraftWorld, tokenizer: WordTokenizer, pool: Sequence[Task], key: str
) -> Iterator[TokenisedDemonstration]:
    """Demonstrations without end: a random task of the pool, random chunks, habits drawn anew."""
    rng = random.Random(f"mini-demonstrations-{key}")
    while True:
        task = rng.choice(pool)
        texts = draw_chunks(rng)
        played = demonstrate(world, task, draw_habits(texts, rng), draw_slip(rng))
        shown_texts = [wrap(text, rng) for text in texts]
        yield tokenise_demonstration(tokenizer, task, shown_texts, played)
