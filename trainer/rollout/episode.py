"""The one episode: a state machine between a shop session and whatever generates the turns.

It does no input or output and knows no engine. The driver asks ``begin`` for the conversation,
``tools`` for the schemas of the page, hands each sampled turn to ``take`` and appends what comes
back; None means that the episode has ended. Three kinds of bad luck are kept apart (environment.md
§6.8, training.md §4.5):

- a *protocol error* executes nothing, is answered with feedback on the same page, and costs a turn;
- a *policy failure* (``generation_length``) and the *action limit* end the episode, scored zero;
- a *technical failure* (shop, engine, numbers that cannot be true) ends it unscored.

Every generated turn is recorded, malformed and truncated ones included.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any, Literal, Protocol

from trainer.canonical import utc_now
from trainer.rollout import traces
from trainer.rollout.conversation import ConversationBuilder, Tools, shown_instruction
from trainer.rollout.policy import Conversation, Message, ModelTurn, TokenRecord, ToolCall
from trainer.rollout.private import public_answer
from trainer.rollout.records import (
    call_record,
    failure_record,
    final_record,
    head_record,
    step_record,
)
from trainer.rollout.types import EpisodeRequest, EpisodeResult
from trainer.shop.session import ShopSession
from trainer.shop.tools import ToolCallError, action_of
from trainer.shop.types import Action, Observation, StepResult, Task
from trainer.shop.world import World


class TechnicalFailure(Exception):
    """The episode cannot go on through no fault of the policy."""

    def __init__(self, category: str, message: str) -> None:
        super().__init__(message)
        self.category = category


class Session(Protocol):
    """What an episode needs of a shop session; one inside this process is a ``ShopSession``."""

    @property
    def task(self) -> Task: ...
    def reset(self) -> Observation: ...
    def step(self, action: Action) -> StepResult: ...
    def terminate(self, reason: Literal["action_limit", "generation_length"]) -> StepResult: ...


class Episode:
    """One episode of ``request``; ``provenance`` are the trace sections that the run shares.

    ``session`` is where it is played, a session of ``world`` by default; another one (a shop
    service) may do input and output, then so do the constructor and ``take``.
    """

    def __init__(
        self,
        world: World,
        builder: ConversationBuilder,
        request: EpisodeRequest,
        *,
        provenance: Mapping[str, Any],
        max_turns: int,
        exact_tokens: bool = False,
        session: Session | None = None,
    ) -> None:
        self.request = request
        self.max_turns = max_turns
        self._builder = builder
        self._provenance = provenance
        self._exact_tokens = exact_tokens
        self._primary: str = world.profile.primary_reward
        self._started = time.monotonic()
        self._started_at = utc_now()
        self._ended_at: str | None = None
        self._duration_ms = 0.0
        self._prompt: tuple[Message, ...] = ()
        self.steps: list[dict[str, Any]] = []  # the trace's, one a sampled turn
        self._final: StepResult | None = None
        self._error: dict[str, Any] | None = None
        self._session: Session = session or ShopSession(
            world, request.job.task_id, max_actions=max_turns
        )
        self._page: Observation = self._session.reset()
        self._task = self._session.task
        self._first_state = self._page.state
        self._text = self._page.text

    def begin(self) -> Conversation:
        """The prompt and the key of the random numbers."""
        self._prompt = self._builder.prompt(self._task, self.request.chunks, self._page)
        self._text = self._prompt[-1].content
        return Conversation(self._prompt, self.request.noise_key)

    def tools(self) -> Tools:
        """The schemas offered on the present page."""
        return self._builder.tools(self._page.state)

    def take(self, turn: ModelTurn) -> tuple[Message, ...] | None:
        """Play one sampled turn. Returns the messages that follow it, or None at the end."""
        step = step_record(len(self.steps) + 1, self._text, turn)
        self.steps.append(step)
        try:
            _check_engine(turn)
            return self._play(turn, step)
        except TechnicalFailure as failure:
            self._fail(f"model_step_{len(self.steps)}", failure, failure.category)
        except Exception as error:  # any fault of the shop makes this one episode unscored
            self._fail(f"environment_step_{len(self.steps)}", error, "environment")
        return None

    def fail(self, category: str, error: Exception) -> None:
        """End the episode unscored between two turns, because the next one could not be sampled."""
        self._fail(f"model_step_{len(self.steps) + 1}", error, category)

    def _play(self, turn: ModelTurn, step: dict[str, Any]) -> tuple[Message, ...] | None:
        state = self._page.state
        if turn.finish_reason == "length" and not self._builder.holds_a_call(turn):
            step["policy_failure"] = {"code": "generation_length"}
            self._end(self._session.terminate("generation_length"))
            return None
        try:
            call = self._builder.call(turn, state)
            step["model"]["tool_calls"] = [call_record(call)]
            action = action_of(call.name, call.arguments, state)
        except ToolCallError as error:
            return self._repair(turn, step, error)
        return self._act(call, action, step)

    def _act(
        self, call: ToolCall, action: Action, step: dict[str, Any]
    ) -> tuple[Message, ...] | None:
        result = self._session.step(action)
        step["action"] = str(action)
        step["environment"] = {
            "done": result.done,
            "reward": result.reward,
            "observation_state": result.observation.state,
            "action_feedback": result.feedback,
        }
        self._page = result.observation
        if result.done:
            self._end(result)
            return None
        return self._go_on(self._builder.page(call, result.observation))

    def _repair(
        self, turn: ModelTurn, step: dict[str, Any], error: ToolCallError
    ) -> tuple[Message, ...] | None:
        messages = self._builder.feedback(turn, error.code, self._page.state)
        step["protocol_error"] = {"code": error.code, "message": error.message}
        step["protocol_feedback"] = messages[0].content
        return self._go_on(messages)

    def _go_on(self, messages: tuple[Message, ...]) -> tuple[Message, ...] | None:
        if len(self.steps) >= self.max_turns:
            self._end(self._session.terminate("action_limit"))
            return None
        self._text = messages[0].content
        return messages

    def _end(self, result: StepResult) -> None:
        self._final = result
        self._stop_clock()

    def _fail(self, stage: str, error: Exception, category: str) -> None:
        self._error = failure_record(stage, error, category)
        self._stop_clock()

    def _stop_clock(self) -> None:
        self._ended_at = utc_now()
        self._duration_ms = (time.monotonic() - self._started) * 1000

    def head(self) -> dict[str, Any]:
        """The trace as it is before the first turn, its keys in their order."""
        made = {"started_at": self._started_at, "reset": self._reset_record()}
        return head_record(self.request, self._provenance, self._prompt) | made

    def text_after(self, place: int) -> str:
        """The text that answered turn ``place`` (from 0)."""
        if place + 1 < len(self.steps):
            return str(self.steps[place + 1]["observation"])
        return self._final.observation.text if self._final else self._text

    def ending(self) -> dict[str, Any] | None:
        """What the end added to the trace, without what is private; None before it."""
        if self._ended_at is None:
            return None
        return self._tail(public_answer(final_record(self._final)) if self._final else None)

    def _tail(self, final: dict[str, Any] | None) -> dict[str, Any]:
        return {
            "status": "failed" if final is None else "completed",
            "ended_at": self._ended_at,
            "duration_ms": round(self._duration_ms, 3),
            "final": final,
            "error": self._error,
        }

    def result(self, tokens: TokenRecord | None) -> EpisodeResult:
        """The finished episode with its trace; ``tokens`` are the engine's, if it has any."""
        final = None if self._final is None else final_record(self._final)
        reward = traces.score(final)
        if reward is not None and traces.breaks_contract(reward, self._primary):
            self._error = {
                "stage": "scoring",
                "type": "RewardContractError",
                "message": f"reward {reward['reward']!r} is not {self._primary} "
                f"{reward[self._primary]!r}",
                "category": "contract",
            }
            reward = None
        trace = self.head() | self._tail(final) | {"steps": self.steps}
        if final is None:
            tokens = None  # of an episode that failed technically nothing is trusted
        if tokens is not None:
            trace["tokens"] = traces.token_summary(tokens, exact=self._exact_tokens)
        return EpisodeResult(self.request, trace, reward or {}, reward is not None, tokens)

    def _reset_record(self) -> dict[str, Any]:
        return {
            "task_instruction": shown_instruction(self._task),
            "user_persona": dict(self._task.persona),
            "observation_state": self._first_state,
        }


def _check_engine(turn: ModelTurn) -> None:
    """Refuse turns whose numbers cannot be trusted (training.md §4.5.5)."""
    if turn.finish_reason == "abort":
        if turn.decode_error is not None:
            raise TechnicalFailure("engine", turn.decode_error)
        raise TechnicalFailure("aborted", "the engine aborted the generation")
    if len(turn.token_ids) != len(turn.log_probs):
        raise TechnicalFailure(
            "engine", f"{len(turn.token_ids)} tokens but {len(turn.log_probs)} log-probabilities"
        )
    if not all(map(math.isfinite, turn.log_probs)):
        raise TechnicalFailure("engine", "a log-probability is not finite")
