"""Asking the model: what was answered before comes from the journal, the rest is paid for."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from trainer.analyst.endpoint.budget import Budget, cost_of
from trainer.analyst.endpoint.client import Attempt, ChatClient, TransportFailed
from trainer.analyst.endpoint.journal import Journal, reply_of
from trainer.analyst.endpoint.wire import Message, Reply, Request, Usage
from trainer.analyst.settings import ChatSettings
from trainer.canonical import canonical_json


@dataclass(slots=True)
class Account:
    """What one conversation used, resumed parts included."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    failed_attempts: int = 0
    cost: float = 0.0
    seconds: float = 0.0

    def add(self, row: dict[str, Any]) -> None:
        """Count a line of the journal."""
        usage = Usage(**row["usage"]) if row["usage"] else Usage()
        self.calls += 1
        self.prompt_tokens += usage.prompt
        self.completion_tokens += usage.completion
        self.cached_tokens += usage.cached
        self.reasoning_tokens += usage.reasoning
        self.failed_attempts += len(row["failed_attempts"])
        self.cost += row["cost"]
        self.seconds += row["seconds"]

    def to_record(self) -> dict[str, Any]:
        record = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**record, "cost": round(self.cost, 6), "seconds": round(self.seconds, 3)}


@dataclass(slots=True)
class Conversation:
    """One conversation with the model. ``max_tokens`` bounds each answer."""

    client: ChatClient
    journal: Journal
    budget: Budget
    settings: ChatSettings
    max_tokens: int
    for_session: bool = True
    account: Account = field(default_factory=Account)
    _calls: int = 0

    def ask(self, messages: list[Message], tools: list[dict[str, Any]]) -> Reply:
        """The next answer. Raises TransportFailed, ServerRefuses, BudgetSpent, StopRequested."""
        self._calls += 1
        request = self._request(messages, tools)
        known = self.journal.answered(self._calls, request)
        if known is None:
            self._ask(request)
            known = self.journal.answered(self._calls, request)
            if known is None:
                raise AssertionError("an answer was recorded and cannot be found")
        self.account.add(known)
        return reply_of(known)

    def _request(self, messages: list[Message], tools: list[dict[str, Any]]) -> Request:
        settings = self.settings
        request: Request = {
            "model": settings.model,
            "messages": list(messages),
            "tools": tools,
            "tool_choice": "auto",
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            settings.max_tokens_name: self.max_tokens,
        }
        if settings.extra_body:
            request["extra_body"] = dict(settings.extra_body)
        return request

    def _ask(self, request: Request) -> None:
        """Ask the server and put on record what it said, or that it said nothing."""
        bound = len(
            canonical_json(request).encode()
        )  # no tokenizer makes more of a text than bytes
        largest = Usage(prompt=bound, completion=self.max_tokens)
        failures: list[Attempt] = []
        started = time.monotonic()
        reply: Reply | None = None
        usage: Usage | None = None
        problem: str | None = None
        with self.budget.reserve(largest, for_session=self.for_session):
            try:
                reply = self.client.complete(request, failures)
                usage = reply.usage or largest  # a server that does not count is not for free
                self.budget.add(usage)
            except TransportFailed as error:
                problem = str(error)
                raise
            finally:
                if reply is not None or problem is not None:
                    self.journal.record(
                        self._calls,
                        request,
                        reply,
                        failures=[attempt.to_record() for attempt in failures],
                        error=problem,
                        usage=usage,
                        cost=cost_of(usage, self.settings.prices) if usage else 0.0,
                        seconds=time.monotonic() - started,
                    )
