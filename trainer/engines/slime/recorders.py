"""Who turns an episode's turns into Samples: slime's own trajectory manager, or we.

slime's manager (where the checkout has one with ``fork_threshold_tokens``) is run with threshold 0:
its default drops the sampled tokens of short turns from the loss. Our own recorder works with
every slime and is the one for append-only prompts. The contract tests feed both the same turns and
compare tokens, masks and log-probabilities. Specification: training.md §4.5, §4.6, §8.3, §8.4.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from trainer.engines.slime.history import Tokenizer
from trainer.engines.slime.samples import Turn, rows_of, sample_of_row
from trainer.engines.slime.settings import HookSettings


@dataclass(frozen=True, slots=True)
class Echo:
    """What slime's manager needs of a turn beside its tokens: the messages around it."""

    prompt_messages: Sequence[Mapping[str, Any]]
    response_message: Mapping[str, Any]
    step_index: int


class Recorder(Protocol):
    """Collects the turns of one episode and makes its Samples."""

    def record(self, turn: Turn, echo: Echo) -> None:
        """Take in one sampled turn, malformed and truncated ones included."""
        ...

    async def samples(self, base: Any) -> list[Any]:
        """The episode's rows; empty when nothing was sampled."""
        ...

    async def drop(self) -> None:
        """Forget the episode; it could not be scored."""
        ...


class OwnRecorder:
    """One Sample per turn, or one per unbroken token sequence."""

    def __init__(self, tokenizer: Tokenizer, *, contiguous: bool, max_tokens: int) -> None:
        self._tokenizer = tokenizer
        self._contiguous = contiguous
        self._max_tokens = max_tokens
        self._turns: list[Turn] = []

    def record(self, turn: Turn, echo: Echo) -> None:
        self._turns.append(turn)

    async def samples(self, base: Any) -> list[Any]:
        rows = rows_of(self._turns, contiguous=self._contiguous, max_tokens=self._max_tokens)
        return [
            sample_of_row(
                row,
                base,
                self._tokenizer.decode(
                    row.token_ids[row.prompt_length :], skip_special_tokens=False
                ),
            )
            for row in rows
        ]

    async def drop(self) -> None:
        self._turns.clear()


class SlimeRecorder:
    """slime's OpenAI adapter and trajectory manager; the adapter is shared by the process."""

    def __init__(self, adapter: Any, session_id: str, *, max_tokens: int) -> None:
        self._adapter = adapter
        self._session_id = session_id
        adapter.open_session(session_id, max_context_tokens=max_tokens)

    def record(self, turn: Turn, echo: Echo) -> None:
        from slime.agent.trajectory import TurnRecord

        self._adapter.manager.record_turn(
            self._session_id,
            turn=TurnRecord(
                prompt_ids=list(turn.prompt_ids),
                output_ids=list(turn.output_ids),
                finish_reason=turn.finish_reason,
                output_log_probs=list(turn.log_probs),
            ),
            prompt_messages=[dict(message) for message in echo.prompt_messages],
            response_message=dict(echo.response_message),
            metadata={"sid": self._session_id, "step_index": echo.step_index},
        )

    async def samples(self, base: Any) -> list[Any]:
        made: list[Any] = await self._adapter.finish_session(self._session_id, base_sample=base)
        return made

    async def drop(self) -> None:
        await self._adapter.drop_session(self._session_id)


def slime_records_turns() -> bool:
    """Whether this slime's adapter keeps every sampled token and can forget an episode."""
    try:
        from slime.agent.adapters.openai import OpenAIAdapter
        from slime.agent.trajectory import TrajectoryManager
    except ImportError:
        return False
    wanted = "fork_threshold_tokens"
    return hasattr(OpenAIAdapter, "drop_session") and all(
        wanted in inspect.signature(kind.__init__).parameters
        for kind in (OpenAIAdapter, TrajectoryManager)
    )


def make_adapter(tokenizer: Tokenizer, base_url: str, *, tool_parser: str, reasoning: str) -> Any:
    """slime's adapter; threshold 0, so that no short turn is taken out of the loss."""
    from slime.agent.adapters.openai import OpenAIAdapter

    return OpenAIAdapter(
        tokenizer=tokenizer,
        sglang_url=base_url,
        tool_parser=tool_parser,
        reasoning_parser=reasoning,
        fork_threshold_tokens=0,
    )


def uses_slime(settings: HookSettings) -> bool:
    """Whether slime's manager records the episodes of these settings."""
    if settings.sample_layout == "episode" or settings.recorder == "own":
        return False
    return settings.recorder == "slime" or slime_records_turns()
