"""Asks a language model for the ceilings that persona tasks state (environment.md §1.7.3–4).

The short text is asked about first, the full text only if the short one states no ceiling. Answers
are kept in an append-only cache; an entry counts only when archive, endpoint, model, protocol and
prompt are the same, so a changed prompt never mixes with old answers. Interrupted work continues
where it was."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.canonical import fingerprint
from trainer.errors import IncompleteError
from trainer.files import append_jsonl, read_jsonl
from trainer.shop.archive import Archive
from trainer.shop.data.annotation import (
    SCHEMA,
    Annotation,
    AnnotationError,
    read_annotation,
)
from trainer.shop.raw import RawRecord

PROTOCOL_VERSION = "persona-price-upper-v1"
MAX_TOKENS = 128
ATTEMPTS = 3

PROMPT = """You read one Chinese shopping request and report the most the shopper will pay.
Answer with one JSON object: task_id, kind, amount, evidence.
kind is one of
- hard_upper: a total price limit ("500元以内", "不超过800");
- approximate_upper: an approximate price ("300元左右");
- no_budget: no price is mentioned; evidence is then empty;
- lower_only: only a lower bound;
- non_total_price: a price that is not the total (instalments, price per piece of a set);
- ambiguous: a price is mentioned but its meaning is unclear.
amount is the number in yuan for the first two kinds, the upper end of a range; otherwise null.
evidence is copied verbatim from the request."""

#: (system prompt, user text) → answer text. Raises EndpointError when none can be had.
Ask = Callable[[str, str], str]


class EndpointError(RuntimeError):
    """The endpoint does not answer; asking about other tasks would not help."""


def persona_texts(archive: Archive) -> Iterator[tuple[int, str, str]]:
    """(task id, short text, full text) of each persona task, numbered as cleaning numbers them."""
    number = 0
    for position, raw in enumerate(archive):
        record = RawRecord(raw, position, archive.path)
        has_persona = bool(record.mapping("user_persona"))
        for index, item in enumerate(record.items("instructions")):
            task = record.inner(item, f"instructions[{index}]")
            if has_persona:
                yield number, task.text("instruction_simple"), task.text("instruction")
            number += 1


@dataclass(frozen=True, slots=True)
class AnnotatorIdentity:
    """What an answer depends on."""

    source_sha256: str
    endpoint: str
    model: str

    def record(self) -> dict[str, str]:
        return {
            "source_sha256": self.source_sha256,
            "endpoint": self.endpoint,
            "model": self.model,
            "protocol_version": PROTOCOL_VERSION,
            "prompt_sha256": fingerprint(PROMPT),
        }


class PriceAnnotator:
    """Annotates tasks with a model behind ``ask``; ``cache`` is a JSON lines file."""

    def __init__(self, ask: Ask, identity: AnnotatorIdentity, cache: Path) -> None:
        self._ask = ask
        self._cache = cache
        self._lock = threading.Lock()
        self._key = fingerprint(identity.record())
        self._known: dict[tuple[int, str], dict[str, Any]] = {
            (row["task_id"], row["text_sha256"]): row["answer"]
            for row in read_jsonl(cache)
            if row.get("key") == self._key
        }

    def annotate(
        self, tasks: Iterable[tuple[int, str, str]], *, workers: int = 8
    ) -> dict[int, Annotation]:
        """Annotations of (task id, short text, full text). Raises IncompleteError naming
        failures."""
        done: dict[int, Annotation] = {}
        failed: dict[int, str] = {}
        with ThreadPoolExecutor(workers) as pool:
            futures = {task[0]: pool.submit(self._task, *task) for task in tasks}
            for task_id, future in futures.items():
                try:
                    done[task_id] = future.result()
                except AnnotationError as error:
                    failed[task_id] = str(error)
                except EndpointError as error:
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise IncompleteError(
                        f"{error}. Run again when it answers: finished answers are kept in"
                        f" {self._cache}"
                    ) from error
        if failed:
            task_id, reason = next(iter(failed.items()))
            raise IncompleteError(
                f"{len(failed)} of {len(futures)} price annotations failed; first: task {task_id}:"
                f" {reason}. Run again: finished answers are kept in {self._cache}"
            )
        return done

    def _task(self, task_id: int, short: str, full: str) -> Annotation:
        annotation = self._text(task_id, short)
        if annotation.ceiling is None and full != short:
            return self._text(task_id, full)
        return annotation

    def _text(self, task_id: int, text: str) -> Annotation:
        text_key = (task_id, fingerprint(text))
        if text_key in self._known:
            return read_annotation(self._known[text_key], task_id, text)
        error = AnnotationError("never asked")
        for _ in range(ATTEMPTS):
            try:
                annotation = read_annotation(
                    self._ask(PROMPT, f"task_id: {task_id}\n{text}"), task_id, text
                )
            except AnnotationError as problem:
                error = problem
                continue
            row = {
                "key": self._key,
                "task_id": task_id,
                "text_sha256": text_key[1],
                "answer": annotation.to_record(),
            }
            with self._lock:
                append_jsonl(self._cache, [row])
            return annotation
        raise error


def openai_ask(base_url: str, model: str, api_key: str | None, *, timeout: float = 60.0) -> Ask:
    """``ask`` over an OpenAI-compatible endpoint: temperature 0, strict schema, no thinking."""
    from openai import OpenAI, OpenAIError

    client = OpenAI(base_url=base_url, api_key=api_key or "none", timeout=timeout, max_retries=4)
    schema = {"name": "price", "strict": True, "schema": SCHEMA}

    def ask(system: str, user: str) -> str:
        settings: Mapping[str, Any] = {
            "response_format": {"type": "json_schema", "json_schema": schema},
            "extra_body": {"chat_template_kwargs": {"enable_thinking": False}},
        }
        try:
            reply = client.chat.completions.create(
                model=model,
                messages=[
                    {"role": "system", "content": system},
                    {"role": "user", "content": user},
                ],
                temperature=0,
                max_tokens=MAX_TOKENS,
                **settings,
            )
        except OpenAIError as error:
            raise EndpointError(f"{base_url}: {error}") from error
        if not reply.choices:
            raise AnnotationError(f"{base_url}: the reply has no choice")
        return reply.choices[0].message.content or ""

    return ask
