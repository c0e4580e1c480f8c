"""One sampled turn from SGLang's ``/generate``: token ids and log-probabilities as they were drawn.

Ids come from ``meta_info.output_token_logprobs`` alone; text is never tokenised again. A request is
never repeated, because a second answer would be another sample; a cancelled one is aborted on the
server, so that it stops using the cache. One connection pool per process and event loop.
Specification: training.md §4.5.4, §8.3.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.http_library import http
from trainer.rollout.episode import TechnicalFailure

READ_TIMEOUT_S = 900.0
ROUTING_HEADER = "X-SMG-Routing-Key"
FIXED_PARAMETERS: Mapping[str, Any] = {
    "skip_special_tokens": False,
    "spaces_between_special_tokens": False,
    "no_stop_trim": True,
}


@dataclass(frozen=True, slots=True)
class Generation:
    """What the engine sampled for one prompt."""

    output_ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    finish_reason: str
    weight_version: str | None = None
    cached_tokens: int = 0
    latency_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class SamplingRequest:
    """How to sample one turn: slime's parameters, the turn's cap and the context's."""

    parameters: Mapping[str, Any]
    max_new_tokens: int
    max_context_tokens: int

    def for_prompt(self, length: int) -> dict[str, Any] | None:
        """The engine's parameters for a prompt of ``length`` tokens; None without room."""
        room = self.max_context_tokens - length if self.max_context_tokens else self.max_new_tokens
        if room <= 0:
            return None
        limit = min(self.max_new_tokens, room)
        return {**self.parameters, **FIXED_PARAMETERS, "max_new_tokens": limit}


class SglangClient:
    """Talks to the router of slime's engines."""

    def __init__(self, base_url: str) -> None:
        httpx = http()
        self.base_url = base_url.rstrip("/")
        timeout = httpx.Timeout(30.0, read=READ_TIMEOUT_S, pool=None)
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        secure = self.base_url.startswith("https")  # reading certificates for nothing takes long
        self._http = httpx.AsyncClient(
            timeout=timeout, limits=limits, trust_env=False, verify=secure
        )

    async def generate(
        self, prompt_ids: Sequence[int], request: SamplingRequest, *, session_id: str
    ) -> Generation:
        """Sample one turn. Raises TechnicalFailure for anything but a whole answer.

        A prompt that fills the context is answered here: nothing sampled, finish reason ``length``.
        """
        parameters = request.for_prompt(len(prompt_ids))
        if parameters is None:
            return Generation((), (), "length")
        rid = uuid.uuid4().hex
        started = time.monotonic()
        payload = {
            "rid": rid,
            "input_ids": list(prompt_ids),
            "sampling_params": parameters,
            "return_logprob": True,
        }
        try:
            data = await self._post("/generate", payload, {ROUTING_HEADER: session_id})
        except asyncio.CancelledError:
            await asyncio.shield(self._abort(rid))
            raise
        return read_generation(data, latency_ms=(time.monotonic() - started) * 1000)

    async def _post(self, path: str, payload: Any, headers: Mapping[str, str]) -> Any:
        httpx = http()
        try:
            reply = await self._http.post(self.base_url + path, json=payload, headers=dict(headers))
        except httpx.HTTPError as error:
            raise TechnicalFailure("engine", f"{type(error).__name__}: {error}") from error
        if reply.status_code >= 400:
            raise TechnicalFailure("engine", f"HTTP {reply.status_code}: {reply.text[:400]}")
        try:
            return reply.json()
        except ValueError as error:
            raise TechnicalFailure("engine", f"the reply is not JSON: {error}") from error

    async def _abort(self, rid: str) -> None:
        with contextlib.suppress(TechnicalFailure):  # the engine frees it at its own limit
            await self._post("/abort_request", {"rid": rid}, {})

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()


def read_generation(data: Any, *, latency_ms: float) -> Generation:
    """The generation in an engine's reply. Raises TechnicalFailure when it is not whole."""
    meta = data.get("meta_info") if isinstance(data, Mapping) else None
    if not isinstance(meta, Mapping):
        raise TechnicalFailure("engine", "the reply has no meta_info")
    drawn = meta.get("output_token_logprobs") or []
    if not drawn and meta.get("completion_tokens"):
        raise TechnicalFailure("engine", "the reply has tokens but no output_token_logprobs")
    try:
        output_ids = tuple(int(item[1]) for item in drawn)
        log_probs = tuple(math.nan if item[0] is None else float(item[0]) for item in drawn)
    except (TypeError, ValueError, IndexError, KeyError) as error:
        raise TechnicalFailure(
            "engine", f"output_token_logprobs cannot be read: {error}"
        ) from error
    finish = meta.get("finish_reason") or {}
    reason = finish.get("type", "stop") if isinstance(finish, Mapping) else str(finish)
    version = meta.get("weight_version")
    return Generation(
        output_ids,
        log_probs,
        reason or "stop",
        None if version is None else str(version),
        int(meta.get("cached_tokens") or 0),
        latency_ms,
    )
