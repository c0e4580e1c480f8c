"""The analyst's own sessions of the task: one trial after another, each a fresh session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from trainer.analyst.cards import Investigation
from trainer.analyst.redaction import redact
from trainer.shop.tools import action_of
from trainer.shop.types import Action, Observation, StepResult

Row = dict[str, Any]


class LiveSession(Protocol):
    """A session of the failed task."""

    def reset(self) -> Observation: ...
    def step(self, action: Action) -> StepResult: ...


@dataclass(slots=True)
class LiveShop:
    """Plays trials. A purchase, or the shop's action limit, ends a trial and opens the next one."""

    open_session: Callable[[], LiveSession]
    actions: list[str] = field(default_factory=list)
    valid: int = 0
    trials: list[Row] = field(default_factory=list)
    _session: LiveSession = field(init=False)
    _in_trial: int = 0
    page: Observation = field(init=False)

    def __post_init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._session = self.open_session()
        self.page = self._session.reset()
        self._in_trial = 0

    def act(self, name: str, arguments: dict[str, Any]) -> Row:
        """Carry out a call; returns what the analyst is told. Raises ToolCallError."""
        action = action_of(name, arguments, self.page.state)
        result = self._session.step(action)
        feedback = dict(result.feedback or {})
        self.actions.append(redact(str(action)))
        self.valid += bool(feedback.get("valid"))
        self._in_trial += 1
        told: Row = {"trial": len(self.trials) + 1, "feedback": feedback}
        if not result.done:
            self.page = result.observation
            return told
        record = {
            "trial": len(self.trials) + 1,
            "actions": self.actions[-self._in_trial :],
            "reward": result.reward,
            "reward_detail": dict(result.reward_detail),
            "purchase": dict(result.purchase),
            "termination_reason": result.termination_reason,
        }
        self.trials.append(record)
        self._begin()
        return {**told, "trial_ended": {k: v for k, v in record.items() if k != "actions"}}

    def investigation(self, transcript: list[Row], accounting: Row) -> Investigation:
        """What a card says about how it was found out."""
        return Investigation(
            actions=list(self.actions),
            valid_actions=self.valid,
            trials=list(self.trials),
            transcript=transcript,
            accounting=accounting,
        )
