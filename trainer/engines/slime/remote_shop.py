"""A shop session behind the published HTTP protocol, as episodes see it (environment.md §5).

One object owns at most one lease. Calls block and are made in threads. Nothing is ever repeated:
the protocol's calls are not idempotent. A ``reset`` waits as long as the service lets it, because
it queues there for a slot.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, Literal

from trainer.http_library import http
from trainer.rollout.episode import TechnicalFailure
from trainer.shop.types import Action, Observation, StepResult, Task

PRIVATE_KEYS = ("lease_id", "env_idx")


class RemoteSession:
    """A session of the service at ``base_url``; ``close`` releases its slot."""

    def __init__(
        self, base_url: str, task_id: int, *, timeout: float, persona: bool, trust_env: bool
    ) -> None:
        httpx = http()
        self._url = base_url.rstrip("/") + "/api/shop_agent"
        self._timeout = timeout
        self._task_id = task_id
        self._persona = persona
        self._lease: dict[str, Any] | None = None
        self._task: Task | None = None
        self._http = httpx.Client(
            timeout=httpx.Timeout(timeout),
            trust_env=trust_env,
            verify=self._url.startswith("https"),  # reading certificates for nothing takes long
        )
        self.environment_version = ""

    @property
    def task(self) -> Task:
        """The task as the agent may know it; the goal stays with the service."""
        if self._task is None:
            raise RuntimeError("reset() first")
        return self._task

    def reset(self) -> Observation:
        """Lease a slot and open the task. Raises TechnicalFailure."""
        if self._lease is not None:
            raise RuntimeError("this session already holds a lease")
        reply = self._call(
            {
                "action": "reset",
                "idx": self._task_id,
                "if_persona": self._persona,
                "include_private_goal": False,
                "interaction_mode": "single_turn",
            },
            waits=True,
        )
        self._lease = {key: reply[key] for key in PRIVATE_KEYS if key in reply}
        observation = _observation(reply)
        instruction = reply.get("task_instruction")
        if not isinstance(instruction, str):
            raise TechnicalFailure("environment", "the reset reply has no task_instruction")
        persona = reply.get("user_persona")
        self.environment_version = str(reply.get("environment_version", ""))
        self._task = Task(
            task_id=self._task_id,
            asin="",
            instruction=instruction,
            instruction_simple=instruction,
            persona=persona if isinstance(persona, Mapping) else {},
            attributes=(),
            goal_options=(),
            price_upper=None,
            category="",
            name="",
        )
        return observation

    def step(self, action: Action) -> StepResult:
        """Send one action. Raises TechnicalFailure."""
        return _result(self._call({"action": "interact", "response": str(action)}))

    def terminate(self, reason: Literal["action_limit", "generation_length"]) -> StepResult:
        """End without a purchase. Raises TechnicalFailure when another reason comes back."""
        reply = self._call({"action": "terminate", "termination_reason": reason})
        if reply.get("termination_reason") != reason:
            raise TechnicalFailure(
                "environment", f"terminated as {reply.get('termination_reason')!r}, not {reason!r}"
            )
        return _result(reply)

    def close(self) -> None:
        """Release the slot, if one is held, and the connection. The lease is forgotten anyway."""
        lease, self._lease = self._lease, None
        try:
            if lease:
                self._post({"action": "release_one", **lease}, waits=False)
        finally:
            self._http.close()

    def _call(self, request: Mapping[str, Any], *, waits: bool = False) -> dict[str, Any]:
        reply = self._post({**request, **(self._lease or {})}, waits=waits)
        with contextlib.suppress(KeyError):
            if reply["error"]:
                raise TechnicalFailure("environment", f"the shop refused: {reply['error']}")
        return reply

    def _post(self, request: Mapping[str, Any], *, waits: bool) -> dict[str, Any]:
        httpx = http()
        timeout = httpx.Timeout(self._timeout, read=None) if waits else httpx.Timeout(self._timeout)
        try:
            reply = self._http.post(self._url, json=request, timeout=timeout)
            result = reply.json().get("result")
        except (httpx.HTTPError, ValueError, AttributeError) as error:
            raise TechnicalFailure("environment", f"{type(error).__name__}: {error}") from error
        if not isinstance(result, dict):
            raise TechnicalFailure("environment", f"HTTP {reply.status_code} without a result")
        if reply.status_code >= 300 and "error" not in result:
            raise TechnicalFailure("environment", f"HTTP {reply.status_code}")
        return result


def _observation(reply: Mapping[str, Any]) -> Observation:
    text, state = reply.get("observation"), reply.get("observation_state")
    if not isinstance(text, str) or not isinstance(state, dict):
        raise TechnicalFailure("environment", "the reply has no observation")
    if not isinstance(state.get("observation_version"), str):
        raise TechnicalFailure("environment", "the observation has no version")
    return Observation(text, state)


def _result(reply: Mapping[str, Any]) -> StepResult:
    done = reply.get("done")
    if not isinstance(done, bool):
        raise TechnicalFailure("environment", f"done is {done!r}")
    return StepResult(
        observation=_observation(reply),
        done=done,
        reward=reply.get("reward", 0.0),
        feedback=reply.get("action_feedback"),
        reward_detail=reply.get("reward_detail") or {},
        purchase=reply.get("purchase") or {},
        goal=reply.get("goal") or {},
        termination_reason=reply.get("termination_reason"),
    )
