"""One training episode: the shared state machine between a shop session and slime's engines.

Order of events and failure classes are those of training.md §4.5: no turn is sampled once slime has
asked to stop, every sampled turn is recorded, the session is always closed, and an episode that
cannot be scored yields one row that trains nothing.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from trainer.engines.slime.admission import BlockingCalls, EpisodeAdmission
from trainer.engines.slime.history import (
    AppendedPrompt,
    RenderedPrompt,
    Tokenizer,
    assistant_message,
    without_end_tokens,
)
from trainer.engines.slime.parsing import parse_output
from trainer.engines.slime.recorders import Echo, Recorder
from trainer.engines.slime.samples import Turn, finish_samples, placeholder
from trainer.engines.slime.settings import HookSettings
from trainer.engines.slime.sglang_client import Generation, SamplingRequest, SglangClient
from trainer.engines.slime.shops import Shop
from trainer.engines.slime.training_traces import failed_result, unscored_result, with_tokens
from trainer.rollout.episode import Episode, Session, TechnicalFailure
from trainer.rollout.live import LiveFile
from trainer.rollout.policy import FinishReason, Message, ModelTurn
from trainer.rollout.types import EpisodeRequest, EpisodeResult
from trainer.shop.client import ShopServiceError
from trainer.shop.identity import OtherEnvironment

logger = logging.getLogger(__name__)
ABORTED = "aborted"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stage:
    """What all episodes of a worker share. ``recorder`` opens one for a session id."""

    settings: HookSettings
    shop: Shop
    tokenizer: Tokenizer
    client: SglangClient
    sampling: SamplingRequest
    provenance: Mapping[str, Any]
    admission: EpisodeAdmission
    calls: BlockingCalls
    aborted: Callable[[], bool]
    recorder: Callable[[str], Recorder]
    tool_parser: str
    reasoning_parser: str


@dataclass(slots=True)
class EpisodeRollout:
    """A finished episode with its training rows and what it cost."""

    result: EpisodeResult
    samples: list[Any]
    waited_seconds: float = 0.0
    seconds: float = 0.0

    @property
    def failure(self) -> str | None:
        """The category of what kept the episode from being scored, or None."""
        error = self.result.trace.get("error")
        return None if self.result.scored or error is None else str(error["category"])


async def play_episode(
    stage: Stage, request: EpisodeRequest, base: Any, *, session_id: str, live: LiveFile
) -> EpisodeRollout:
    """Play one episode in a slot of its own. ``base`` is the Sample that slime asked to fill;
    ``live`` is told of every turn.
    """
    async with stage.admission.slot(stage.settings.episode_concurrency) as waited:
        started = time.monotonic()
        rollout = await _Player(stage, request, base, session_id, live).play()
        rollout.waited_seconds = waited
        rollout.seconds = time.monotonic() - started
        return rollout


class _Player:
    def __init__(
        self, stage: Stage, request: EpisodeRequest, base: Any, session_id: str, live: LiveFile
    ) -> None:
        self.live = live
        self.stage = stage
        self.request = request
        self.base = base
        self.session_id = session_id
        self.turns: list[Turn] = []

    async def play(self) -> EpisodeRollout:
        if self.stage.aborted():
            return self._unplayed(TechnicalFailure(ABORTED, "stopped before the reset"))
        session = self.stage.shop.session(self.request.job.task_id, self.stage.settings.max_steps)
        try:
            return await self._play_in(session)
        finally:
            await self._close(session)

    async def _play_in(self, session: Session) -> EpisodeRollout:
        try:
            episode = await self._blocking(partial(self._open, session))
        except OtherEnvironment:  # no episode of this job can be played in it
            raise
        except Exception as error:  # whatever keeps a session from opening leaves it unscored
            return self._unplayed(error)
        recorder = self.stage.recorder(self.session_id)
        try:
            await self._turns(episode, recorder)
            return await self._finish(episode.result(None), recorder)
        except BaseException:
            await recorder.drop()
            raise

    def _open(self, session: Session) -> Episode:
        self.stage.shop.meet(session)
        return Episode(
            self.stage.shop.world,
            self.stage.shop.builder,
            self.request,
            provenance=self._provenance(),
            max_turns=self.stage.settings.max_steps,
            session=session,
        )

    def _provenance(self) -> dict[str, Any]:
        """What the episodes share, with the environment as it is known by now."""
        return {**self.stage.provenance, "environment": self.stage.shop.identity()}

    async def _turns(self, episode: Episode, recorder: Recorder) -> None:
        """Sample turns until the episode ends, one way or another."""
        prompt = self._prompt(episode.begin().messages)
        try:
            answered: Sequence[Message] | None = ()
            while answered is not None:
                self.live.note([episode])
                turn, drawn = await self._sample(episode, prompt, recorder)
                answered = await self._blocking(partial(episode.take, turn))
                if answered is not None:
                    prompt.add(turn, drawn.output_ids, answered)
        except TechnicalFailure as failure:
            episode.fail(failure.category, failure)
        except Exception as error:  # a template or parser that fails on one text ends no job
            episode.fail("contract", error)
        self.live.note([episode])

    def _prompt(self, messages: Sequence[Message]) -> RenderedPrompt | AppendedPrompt:
        if self.stage.settings.sample_layout == "episode":
            return AppendedPrompt(self.stage.tokenizer, messages)
        return RenderedPrompt(
            self.stage.tokenizer, messages, echo_reasoning=self.stage.settings.echo_reasoning
        )

    async def _sample(
        self, episode: Episode, prompt: RenderedPrompt | AppendedPrompt, recorder: Recorder
    ) -> tuple[ModelTurn, Generation]:
        """One turn, recorded as it was drawn. Raises TechnicalFailure."""
        if self.stage.aborted():
            raise TechnicalFailure(ABORTED, "stopped between two turns")
        page_tools = episode.tools()
        prompt_ids = tuple(prompt.token_ids(page_tools))
        drawn = await self.stage.client.generate(
            prompt_ids, self.stage.sampling, session_id=self.session_id
        )
        if self.stage.aborted() or drawn.finish_reason == "abort":
            raise TechnicalFailure(ABORTED, "stopped while a turn was generated")
        check_numbers(drawn)
        turn = self._read(drawn, len(prompt_ids), prompt.tools(page_tools))
        taken = Turn(
            prompt_ids,
            drawn.output_ids,
            drawn.log_probs,
            drawn.finish_reason,
            drawn.weight_version,
            drawn.cached_tokens,
        )
        self.turns.append(taken)
        said = assistant_message(turn, echo_reasoning=False)
        echo = Echo(prompt.messages, said or {"role": "assistant", "content": ""}, len(self.turns))
        recorder.record(taken, echo)
        return turn, drawn

    def _read(self, drawn: Generation, prompt_tokens: int, tools: Any) -> ModelTurn:
        """What the sampled tokens say."""
        tokenizer = self.stage.tokenizer
        raw = tokenizer.decode(
            without_end_tokens(tokenizer, drawn.output_ids), skip_special_tokens=False
        )
        said = parse_output(
            raw,
            tools,
            tool_parser=self.stage.tool_parser,
            reasoning_parser=self.stage.reasoning_parser,
        )
        reason: FinishReason = "length" if drawn.finish_reason == "length" else "stop"
        return ModelTurn(
            text=said.text,
            finish_reason=reason,
            tool_calls=said.calls,
            reasoning=said.reasoning,
            token_ids=drawn.output_ids,
            log_probs=drawn.log_probs,
            latency_ms=drawn.latency_ms,
            usage={"prompt_tokens": prompt_tokens, "cached_tokens": drawn.cached_tokens},
            decode_error=said.error,
        )

    async def _finish(self, result: EpisodeResult, recorder: Recorder) -> EpisodeRollout:
        if not result.scored:
            await recorder.drop()
            return self._unscored(result)
        samples = await recorder.samples(self.base)
        if not samples:
            return self._unscored(
                unscored_result(
                    result,
                    stage="trajectory_finalize",
                    kind="EmptyTrajectory",
                    message="the first prompt already fills the context",
                    category="context_overflow",
                )
            )
        finish_samples(
            samples,
            self.base,
            reward=result.reward,
            truncated=result.trace["final"]["termination_reason"] == "generation_length",
            metadata=self._metadata(),
        )
        return EpisodeRollout(self._with_tokens(result, samples), samples)

    def _unplayed(self, error: Exception) -> EpisodeRollout:
        """The episode never began: the trace says why."""
        return self._unscored(failed_result(self.request, self._provenance(), error))

    def _unscored(self, result: EpisodeResult) -> EpisodeRollout:
        error = result.trace.get("error") or {"type": "UnscorableFinal", "category": "contract"}
        row = placeholder(
            self.base,
            reason=error["type"],
            category=error["category"],
            metadata=self._metadata(),
        )
        return EpisodeRollout(self._with_tokens(result, []), [row])

    def _with_tokens(self, result: EpisodeResult, samples: Sequence[Any]) -> EpisodeResult:
        exact = self.stage.settings.record_tokens
        return with_tokens(result, self.turns, samples, exact=exact)

    def _metadata(self) -> dict[str, Any]:
        skills = self.request.skills
        return {
            "shopsim_task_id": self.request.job.task_id,
            "shopsim_group_index": self.base.group_index,
            "shopsim_assignment": skills["assignment"],
            "shopsim_diagnostic": skills["diagnostic_full_skill"],
        }

    async def _blocking(self, call: Callable[[], T]) -> T:
        """Call the environment: in a thread when it waits for a network."""
        if not self.stage.shop.blocks:
            return call()
        return await self.stage.calls.run(call, threads=self.stage.settings.episode_concurrency)

    async def _close(self, session: Session) -> None:
        """Give the session's slot back. A failure here changes nothing of the episode."""
        close = getattr(session, "close", None)
        if close is None:
            return
        try:
            await self._blocking(close)
        except (ShopServiceError, TechnicalFailure) as error:
            logger.warning("%s: closing the session failed: %s", self.request.episode_id, error)


def check_numbers(drawn: Generation) -> None:
    """Refuse a turn whose numbers cannot be trained on. Raises TechnicalFailure."""
    if len(drawn.output_ids) != len(drawn.log_probs):
        raise TechnicalFailure(
            "engine", f"{len(drawn.output_ids)} tokens, {len(drawn.log_probs)} log-probabilities"
        )
    if not all(map(math.isfinite, drawn.log_probs)):
        raise TechnicalFailure("engine", "a log-probability is not finite")
