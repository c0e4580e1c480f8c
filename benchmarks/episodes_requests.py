"""What ``benchmarks.episodes`` asks for: lists, searches, and what peers are asked too."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from benchmarks.episodes_work import HAN, LATIN, NEEDLE_EVERY, PRODUCTS

# words of one episode, of none, of one in fifty and of nearly all
WORDS = {"own": "needle-1011", "absent": "needle-7301946582", "rare": "雪松", "common": "水杯"}
# the same questions to us and to peers, whose ways to ask them stand in peer_*.py
QUESTIONS = {
    "list": "/episodes/?format=json",
    "filter": "/episodes/?treatment=bare&outcome=success&format=json",
    **{kind: f"/episodes/?q={word}&format=json" for kind, word in WORDS.items()},
    "open": "/episodes/777/?format=json",  # from a link or a list of everything
    "open_next": "/episodes/777/?format=json",  # where the one before came from too
}


Figure = dict[str, Any]


def figure(value: float, unit: str, peer: float | None = None, *, faster: bool = True) -> Figure:
    """A figure; ``ratio`` above 1 says that ours is the better one."""
    ratio = None
    if peer is not None:
        ratio = value / peer if not faster else peer / value
    return {"value": value, "unit": unit, "peer": peer, "ratio": ratio}


def lists(rng: random.Random, size: int) -> dict[str, str]:
    """Addresses of lists, by what they ask for."""
    return {
        "newest": "",
        "outcome": "outcome=technical",
        "purpose, outcome": f"purpose={rng.choice(('bare', 'masked', 'train'))}&outcome=failure",
        "treatment": f"treatment={rng.choice(('assisted', 'skill_free', 'masked'))}",
        "triage": "triage=model_internalization_deficit",
        "truncated and admitted": "termination=generation_length&admitted=yes",
        "category": f"category={rng.choice(('bottle', 'lamp', 'watch'))}&outcome=success",
        "step": f"experiment=bench&purpose=train&step={rng.randrange(size // 128)}",
        "group": f"experiment=bench&group={rng.randrange(size // 8)}",
        "task": f"experiment=bench&task={rng.randrange(1274)}",
        "reward": f"reward=0.{rng.randrange(10, 89)}..0.9&purpose=bare",
        "narrow reward": f"reward=0.{rng.randrange(100, 890)}..0.8901&turns=11",
        "with chunk": f"chunk=chunk-{rng.randrange(16):04x}",
        "without chunk": f"without=chunk-{rng.randrange(16):04x}&outcome=success",
        "persona": "persona=brand=Mira",
        "by reward": "sort=-reward&outcome=failure",
        "by turns": "sort=turns",
        "deep page": f"before={rng.randrange(size // 10, size)}&outcome=success",
        "checkpoint": f"checkpoint=ckpt-{rng.randrange(max(1, size // 5120)):04d}",
    }


def searches(rng: random.Random, size: int) -> dict[str, str]:
    """Texts, by kind."""
    needle = rng.randrange(size // NEEDLE_EVERY) * NEEDLE_EVERY + 11
    return {
        "own word": f"needle-{needle}",
        "absent word": f"needle-{rng.randrange(10**9, 10**10)}",
        "two characters, rare": "雪松",
        "two characters, frequent": rng.choice([word for word in HAN if len(word) == 2]),
        "two characters, absent": "麒麟",
        "three characters": rng.choice([word for word in HAN if len(word) == 3]),
        "Chinese phrase": "".join(rng.sample(HAN, 2)),
        "product id": rng.choice(PRODUCTS)[0],
        "English substring": rng.choice(LATIN)[1:5],
        "two words": f"{rng.choice(LATIN)} 雪松",
        "word and filter": f"雪松&outcome=success&purpose={rng.choice(('bare', 'train'))}",
    }


def facets(rng: random.Random, size: int) -> dict[str, str]:
    """What the page of a list asks for once it is painted: some of the lists, and searches."""
    words = searches(rng, size)
    asked = {name: f"q={words[name]}" for name in ("own word", "two characters, frequent")}
    every = lists(rng, size) | asked
    kinds = ("newest", "outcome", "reward", "with chunk", "by turns", *asked)
    return {kind: f"{every[kind]}&part=facets" for kind in kinds}


def percentile(values: Iterable[float], percent: int) -> float:
    """The value that ``percent`` of ``values`` do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
