"""A line of a trace file → everything that is stored of it. Pure: runs in processes of its own.

Raises InputError for a line that is no episode; its message says why and is listed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from intraskill_web.episodes import bodies, grams, postings
from intraskill_web.episodes.content import Saying, persona_tags, sayings
from intraskill_web.episodes.pieces import cut as cut_apart
from intraskill_web.episodes.rows import Values, cut, episode_values, group_index
from trainer.errors import InputError

EXCERPT = 160
Groups = Mapping[int, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Prepared:
    """The columns of a row, its index terms and its compressed body."""

    values: Values
    terms: str
    body: bytes | None


def parse(line: bytes) -> Any:
    """The JSON value of a line. Raises InputError.

    The quick parser refuses halves of surrogate pairs and NaN; Python's reads them.
    """
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON: {error}") from error


def prepare(line: bytes, *, purpose: str, arm: str, groups: Groups) -> Prepared:
    """What is stored of one trace. ``groups`` are the lines of ``groups.jsonl`` by index."""
    trace = parse(line)
    index = group_index(trace)
    group = None if index is None else groups.get(index)
    values = episode_values(trace, purpose=purpose, arm=arm, group=group)
    said = list(sayings(trace))
    line = line.rstrip(b"\r\n")
    texts, rest = cut_apart(line, said)
    body = bodies.compress(rest, texts, ready=_as_answered(trace, line))
    return Prepared(values, terms_of(trace, said), body)


def _as_answered(trace: object, line: bytes) -> bool:
    """Whether ``line`` is what an answer would make of it: no NaN, no name twice, no odd number."""
    try:
        return orjson.dumps(trace) == line
    except orjson.JSONEncodeError:
        return False


@dataclass(slots=True)
class Outcome:
    """What a chunk's lines are: entries of the index, and lines that are none."""

    entries: list[Prepared] = field(default_factory=list)
    bad: list[tuple[int, str, str]] = field(default_factory=list)  # line, reason, beginning
    masks: Mapping[str, int] | None = None  # of the entries' terms, which are gone then

    @property
    def turns(self) -> int:
        return sum(entry.values["turns"] for entry in self.entries)


def prepare_lines(
    first: int,
    lines: Sequence[bytes],
    purpose: str,
    arm: str,
    groups: Groups,
    *,
    inverted: bool = False,
) -> Outcome:
    """Prepare every line; no line raises. ``inverted`` makes the masks that PostgreSQL takes."""
    outcome = Outcome()
    for number, line in enumerate(lines, first):
        try:
            entry = prepare(line, purpose=purpose, arm=arm, groups=groups)
        except (InputError, RecursionError) as error:
            excerpt = cut(line[: EXCERPT * 4].decode("utf-8", "replace"), EXCERPT)
            outcome.bad.append((number, cut(error, 300), excerpt))
            continue
        entry.values["line"] = number
        outcome.entries.append(entry)
    if inverted:
        outcome.masks = postings.invert(entry.terms for entry in outcome.entries)
        outcome.entries = [replace(entry, terms="") for entry in outcome.entries]
    return outcome


def terms_of(trace: Mapping[str, Any], said: Iterable[Saying]) -> str:
    """Index terms of a trace: of its texts, which are ``said``, its chunks and its persona."""
    found = [grams.terms(saying.text for saying in said)]
    found += [chunk_term(i) for i in _chunk_ids(trace.get("selected_skills"))]
    found += [persona_term(tag) for tag in persona_tags(trace)]
    return " ".join(filter(None, found))


def chunk_term(skill_id: str) -> str:
    """The term of an episode whose prompt shows a chunk."""
    return _term("c", skill_id)


def persona_term(tag: str) -> str:
    """The term of a fact of the persona, written ``key=value``."""
    return _term("p", tag.casefold())


def _term(kind: str, value: str) -> str:
    digest = hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()
    return f"{grams.MARK}{kind}{digest[:16]}"


def _chunk_ids(chunks: object) -> Iterable[str]:
    for chunk in chunks if isinstance(chunks, list) else []:
        if isinstance(chunk, Mapping) and isinstance(chunk.get("skill_id"), str):
            yield chunk["skill_id"]
