"""The transcript of one conversation: every request and every reply, on disk before it is used.

A line holds what was new in a call: the messages after those it shares with the line before, the
tools where they are new, and the reply or the error. From the lines a conversation is played again
to the point where it broke off, without asking anything that was answered: a call is found by its
number and the hash of its whole request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from trainer.analyst.endpoint.wire import Message, Reply, Request, Usage
from trainer.canonical import fingerprint, utc_now
from trainer.files import append_jsonl, read_jsonl

Row = dict[str, Any]


class Journal:
    """One conversation's file. Not shared between threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._answers: dict[tuple[int, str], Row] = {}
        self._messages: list[Message] = []
        self._tools: set[str] = set()
        for row in read_jsonl(path):
            self._note(row)

    def _note(self, row: Row) -> None:
        if row["reply"] is not None:
            self._answers[row["call"], row["request_sha256"]] = row
        self._messages = [*self._messages[: row["messages_before"]], *row["messages"]]
        self._tools.add(row["tools_sha256"])

    def answered(self, call: int, request: Request) -> Row | None:
        """The line of a call that was answered before."""
        return self._answers.get((call, fingerprint(request)))

    def record(
        self,
        call: int,
        request: Request,
        reply: Reply | None,
        *,
        failures: Sequence[Row],
        error: str | None,
        usage: Usage | None,
        cost: float,
        seconds: float,
    ) -> None:
        """Append a call; it is on disk when this returns."""
        messages: list[Message] = request["messages"]
        kept = _common_prefix(self._messages, messages)
        tools = fingerprint(request.get("tools", []))
        row = {
            "call": call,
            "request_sha256": fingerprint(request),
            "messages_before": kept,
            "messages": messages[kept:],
            "tools_sha256": tools,
            "tools": None if tools in self._tools else request.get("tools", []),
            "settings": {k: v for k, v in request.items() if k not in ("messages", "tools")},
            "reply": None if reply is None else reply.to_record(),
            "error": error,
            "failed_attempts": list(failures),
            "usage": None if usage is None else _usage_record(usage),
            "cost": cost,
            "seconds": round(seconds, 3),
            "created_at": utc_now(),
        }
        append_jsonl(self.path, [row])
        self._note(row)


def reply_of(row: Row) -> Reply:
    """The reply in a line."""
    return Reply.from_record(row["reply"])


def spent_in(folder: Path) -> Iterator[Usage]:
    """The usage of every call that was answered in any transcript below ``folder``."""
    for path in sorted(folder.glob("*.jsonl")):
        for row in read_jsonl(path):
            if row["usage"] is not None:
                yield Usage(**row["usage"])


def _common_prefix(left: Sequence[Message], right: Sequence[Message]) -> int:
    return next(
        (place for place, pair in enumerate(zip(left, right, strict=False)) if pair[0] != pair[1]),
        min(len(left), len(right)),
    )


def _usage_record(usage: Usage) -> Row:
    return {
        "prompt": usage.prompt,
        "completion": usage.completion,
        "cached": usage.cached,
        "reasoning": usage.reasoning,
    }
