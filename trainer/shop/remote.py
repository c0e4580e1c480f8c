"""A shop session behind the wire: the same calls as ``ShopSession``, answered by a service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.shop.client import ShopClient, ShopServiceError
from trainer.shop.types import Action, Observation, StepResult, Task, TerminationReason


class RemoteSession:
    """One episode at a time on a service. ``task`` is filled from the reply to ``reset``."""

    def __init__(self, client: ShopClient, task_id: int) -> None:
        self._client = client
        self._task_id = task_id
        self._task: Task | None = None
        self.done = True

    @property
    def task(self) -> Task:
        """The public side of the task; the goal stays with the service until the end."""
        if self._task is None:
            raise ShopServiceError("no episode: call reset first")
        return self._task

    def reset(self) -> Observation:
        """Begin the episode."""
        reply = self._client.reset(self._task_id)
        instruction = reply["task_instruction"]
        self._task = Task(
            task_id=self._task_id,
            asin="",
            instruction=instruction,
            instruction_simple=instruction,
            persona=reply.get("user_persona") or {},
            attributes=(),
            goal_options=(),
            price_upper=None,
            category="",
            name="",
        )
        self.done = False
        return _observation(reply)

    def step(self, action: Action) -> StepResult:
        """Carry out one action."""
        return self._result(self._client.step(action))

    def terminate(self, reason: TerminationReason) -> StepResult:
        """End without a purchase."""
        return self._result(self._client.terminate(reason))

    def close(self) -> None:
        """Give the slot back."""
        self._client.release()

    def _result(self, reply: Mapping[str, Any]) -> StepResult:
        self.done = bool(reply["done"])
        return StepResult(
            observation=_observation(reply),
            done=self.done,
            reward=float(reply["reward"]),
            feedback=reply.get("action_feedback"),
            reward_detail=reply.get("reward_detail") or {},
            purchase=reply.get("purchase") or {},
            goal=reply.get("goal") or {},
            termination_reason=reply.get("termination_reason"),
        )


def _observation(reply: Mapping[str, Any]) -> Observation:
    return Observation(reply["observation"], reply["observation_state"])
