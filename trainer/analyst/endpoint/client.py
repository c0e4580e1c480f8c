"""One call to the server: patient with what passes, quick to give up on what does not.

Timeouts, lost connections, 408, 409, 429, 5xx and broken bodies are asked again, after the time
that the server names in ``Retry-After`` or else after twice the last wait. A refused key or an
unknown model ends the analysis; any other refusal is this one request's fault.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Protocol

from trainer.analyst.endpoint.wire import BrokenReply, Reply, Request, StreamReader, read_whole
from trainer.analyst.maker import AnalysisEnded, AnalystFailed
from trainer.analyst.settings import ChatSettings
from trainer.errors import InputError
from trainer.progress import check_stop

FIRST_WAIT = 0.5
PATIENCE = (408, 409, 429)
NOBODY = (401, 403, 404)


class ServerRefuses(AnalysisEnded):
    """Key, permission or model: every further call would be refused as well."""


class TransportFailed(AnalystFailed):
    """All attempts of one call failed."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A call that failed and was made again."""

    error: str
    status: int | None
    waited: float

    def to_record(self) -> dict[str, Any]:
        return {"error": self.error, "status": self.status, "waited": round(self.waited, 3)}


class ChatClient(Protocol):
    """Answers a request. Raises TransportFailed, ServerRefuses and StopRequested."""

    def complete(self, request: Request, failures: list[Attempt]) -> Reply: ...


class OpenAIClient:
    """The ``openai`` package, with our own retries. Safe for several threads."""

    def __init__(self, settings: ChatSettings, *, sleep: Callable[[float], None] | None = None):
        """Raises InputError when the environment holds no key."""
        from openai import OpenAI

        key = os.environ.get(settings.api_key_env)
        if not key:
            raise InputError(
                "the environment holds no key for the analyst's server",
                field=settings.api_key_env,
                remedy="Export it; a server that asks for none takes any value",
            )
        self._settings = settings
        self._sleep = sleep or patient_sleep
        self._client = OpenAI(
            api_key=key,
            base_url=settings.base_url,
            timeout=settings.timeout_seconds,
            max_retries=0,
        )

    def complete(self, request: Request, failures: list[Attempt]) -> Reply:
        """The answer; ``failures`` collects what went wrong before."""
        from openai import APIConnectionError, APIError, APIResponseValidationError, APIStatusError

        wait = FIRST_WAIT
        while True:
            check_stop()
            try:
                return self._ask(request)
            except APIStatusError as error:
                reason, status = _first_line(error), error.status_code
                asked = retry_after(error.response.headers)
                if status in NOBODY:
                    raise ServerRefuses(f"HTTP {status}: {reason}") from error
                if status < 500 and status not in PATIENCE:
                    raise TransportFailed(f"HTTP {status}: {reason}") from error
            except (
                APIConnectionError,
                APIResponseValidationError,
                APIError,
                BrokenReply,
                json.JSONDecodeError,
            ) as error:
                reason, status, asked = _first_line(error), None, None
            if len(failures) >= self._settings.transport_retries:
                raise TransportFailed(f"{len(failures) + 1} attempts failed, the last: {reason}")
            pause = min(wait if asked is None else asked, self._settings.longest_wait_seconds)
            failures.append(Attempt(reason, status, pause))
            self._sleep(pause)
            wait *= 2

    def _ask(self, request: Request) -> Reply:
        create: Any = self._client.chat.completions.create  # requests are plain values
        if not self._settings.stream:
            return read_whole(create(**request))
        deadline = time.monotonic() + self._settings.timeout_seconds
        reader = StreamReader()
        options = {"stream": True, "stream_options": {"include_usage": True}}
        with create(**request, **options) as stream:
            for chunk in stream:
                reader.add(chunk)
                if time.monotonic() > deadline:
                    raise BrokenReply(f"no end after {self._settings.timeout_seconds:g} s")
        return reader.reply()


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait: ``Retry-After-Ms``, seconds, or a date by its clock."""
    milliseconds = headers.get("retry-after-ms")
    if milliseconds is not None and milliseconds.strip().isdecimal():
        return int(milliseconds) / 1000
    value = (headers.get("retry-after") or "").strip()
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    moment, now = _date(value), _date(headers.get("date") or "") or datetime.now(UTC)
    return None if moment is None else max(0.0, (moment - now).total_seconds())


def _date(text: str) -> datetime | None:
    """A date of HTTP; some servers leave its zone out, which is always GMT."""
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def patient_sleep(seconds: float) -> None:
    """Sleep, but hear a request to stop within half a second."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        check_stop()
        time.sleep(min(left, 0.5))


def _first_line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:500]
