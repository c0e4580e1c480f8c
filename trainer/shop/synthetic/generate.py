"""Generates a catalogue: products, near-duplicates, tasks, personas and, on request, noise."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from trainer.errors import InputError
from trainer.shop.synthetic.filler import Filler
from trainer.shop.synthetic.needs import draw_need, persona_of, sentences
from trainer.shop.synthetic.noise import NOISE
from trainer.shop.synthetic.products import Draft, draft_product, near_duplicate, record_of

GENERATOR_VERSION = "synthetic-catalogue-v1"


@dataclass(frozen=True, slots=True)
class SyntheticSettings:
    """What to generate. Shares are probabilities per product."""

    products: int = 60
    seed: int = 1
    english_share: float = 0.3
    near_duplicate_share: float = 0.35
    persona_share: float = 0.5
    evaluation_share: float = 0.1
    #: probability of each noise kind, for each product
    noise: float = 0.0
    #: share of personas that belong to a user seen before
    returning_user_share: float = 0.1
    #: size of an invented vocabulary that brings listings to real length; 0: none
    filler_words: int = 0

    def __post_init__(self) -> None:
        """Raises InputError for what cannot be generated."""
        if self.products < 1:
            raise InputError(
                "a catalogue has at least one product", field="products", value=self.products
            )
        if not 0 <= self.noise <= 1:
            raise InputError("a probability is from 0 to 1", field="noise", value=self.noise)


def generate_records(settings: SyntheticSettings) -> Iterator[dict[str, Any]]:
    """Records of the published raw schema, in file order. A pure function of the settings."""
    rng = random.Random(f"{GENERATOR_VERSION}-{settings.seed}")
    recent: list[Draft] = []
    users: list[str] = []
    filler = Filler(settings.filler_words, rng) if settings.filler_words else None
    for position in range(settings.products):
        if recent and rng.random() < settings.near_duplicate_share:
            draft = near_duplicate(rng.choice(recent), rng)
        else:
            draft = draft_product(rng, int(rng.random() < settings.english_share))
        recent = [*recent[-49:], draft]
        tag = "eval" if rng.random() < settings.evaluation_share else "train"
        record = record_of(draft, _asin(position, rng), tag, rng)
        if filler:
            filler.fill(record)
        _add_task(record, draft, users, settings, rng)
        for noise in NOISE.values():
            if rng.random() < settings.noise:
                noise(record, rng)
        yield record


def _asin(position: int, rng: random.Random) -> str:
    """Twelve digits, distinct by position, not ascending with it."""
    scrambled = (position * 7_368_787 + 12_345) % 10_000_019
    return f"{600 + rng.randrange(300)}{scrambled:09d}"


def _add_task(
    record: dict[str, Any],
    draft: Draft,
    users: list[str],
    settings: SyntheticSettings,
    rng: random.Random,
) -> None:
    need = draw_need(draft, record, rng)
    has_persona = rng.random() < settings.persona_share
    short, full = sentences(draft, need, rng, hide=has_persona and rng.random() < 0.7)
    task: dict[str, Any] = {
        "asin": record["asin"],
        "instruction": full,
        "attributes": list(need.attributes),
        "instruction_options": list(need.options.values()),
        "options": [f"{axis}: {value}" for axis, value in need.options.items()],
        "worker_id": "synthetic",
    }
    if has_persona:
        task["instruction_simple"] = short
        record["user_persona"] = persona_of(draft, need, _user(users, settings, rng), rng)
    record["instructions"] = [task]


def _user(users: list[str], settings: SyntheticSettings, rng: random.Random) -> str:
    if users and rng.random() < settings.returning_user_share:
        return rng.choice(users)
    users.append(f"U{len(users):07d}")
    return users[-1]


def records_sha256(records: Iterable[dict[str, Any]]) -> str:
    """SHA-256 of the records as compact JSON with sorted keys, one array, trailing newline."""
    digest = hashlib.sha256(b"[")
    for position, record in enumerate(records):
        text = json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        digest.update(("," if position else "").encode() + text.encode())
    digest.update(b"]\n")
    return digest.hexdigest()
