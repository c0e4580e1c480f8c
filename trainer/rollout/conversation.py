"""The one builder of prompts, tools and feedback, for training and evaluation alike.

Two surfaces exist. A world without a language speaks to models that call functions: Chinese texts
and JSON schemas (environment.md §2.5, §2.8, §6.1). A world with a language of its own speaks single
words (the ``mini`` profile). Both see the same pages and the same order of protocol checks:
``tool_call_count``, ``mixed_content``, an undecodable call, ``unavailable_tool``,
``invalid_tool_arguments`` (training.md §4.5). The reasoning of earlier turns is never sent back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from trainer.canonical import fingerprint
from trainer.rollout import prompts
from trainer.rollout.policy import Message, ModelTurn, Role, ToolCall
from trainer.shop.language import WordLanguage
from trainer.shop.tools import ToolCallError, offered, tools_for
from trainer.shop.types import Observation, Task
from trainer.shop.world import World
from trainer.skills.types import Chunk

Tools = Sequence[Mapping[str, Any]]


class ConversationBuilder(Protocol):
    """How one world talks to a policy."""

    def identity(self) -> dict[str, Any]:
        """The prompt's identity in plans and traces."""
        ...

    def prompt(
        self, task: Task, chunks: Sequence[Chunk], observation: Observation
    ) -> tuple[Message, ...]:
        """The messages before the first turn."""
        ...

    def tools(self, state: Mapping[str, Any]) -> Tools:
        """The schemas offered on a page."""
        ...

    def holds_a_call(self, turn: ModelTurn) -> bool:
        """Whether a turn that was cut off by its length limit still holds one whole call."""
        ...

    def call(self, turn: ModelTurn, state: Mapping[str, Any]) -> ToolCall:
        """The one call of a turn. Raises ToolCallError with the code of the first broken rule."""
        ...

    def feedback(self, turn: ModelTurn, code: str, state: Mapping[str, Any]) -> tuple[Message, ...]:
        """What a protocol error is answered with."""
        ...

    def page(self, call: ToolCall, observation: Observation) -> tuple[Message, ...]:
        """What an executed action is answered with."""
        ...


class FunctionConversation:
    """Standard surface: system prompt, persona, chunks; function tools; pages as tool results."""

    def __init__(self, system_prompt: str = prompts.SYSTEM_PROMPT) -> None:
        self.system_prompt = system_prompt

    def identity(self) -> dict[str, Any]:
        return {
            "prompt_version": prompts.PROMPT_VERSION,
            "system_prompt_sha256": fingerprint(self.system_prompt),
            "skill_renderer_version": prompts.SKILL_RENDERER_VERSION,
        }

    def prompt(
        self, task: Task, chunks: Sequence[Chunk], observation: Observation
    ) -> tuple[Message, ...]:
        sections = [self.system_prompt.rstrip()]
        if task.persona:
            persona = json.dumps(dict(task.persona), ensure_ascii=False, sort_keys=True)
            sections.append(f"{prompts.PERSONA_LABEL}\n{persona}")
        if chunks:
            sections.append(render_chunks(chunks))
        request = f"{prompts.TASK_LABEL}\n{shown_instruction(task)}\n\n{observation.text}"
        return (Message("system", "\n\n".join(sections)), Message("user", request))

    def tools(self, state: Mapping[str, Any]) -> Tools:
        return tools_for(state)

    def holds_a_call(self, turn: ModelTurn) -> bool:
        return turn.decode_error is None and len(turn.tool_calls) == 1

    def call(self, turn: ModelTurn, state: Mapping[str, Any]) -> ToolCall:
        if turn.decode_error is None and len(turn.tool_calls) != 1:
            raise ToolCallError("tool_call_count", f"{len(turn.tool_calls)} calls instead of one")
        if turn.text.strip():
            raise ToolCallError("mixed_content", "visible text beside the call")
        if turn.decode_error is not None:
            raise ToolCallError("invalid_tool_call", turn.decode_error)
        return turn.tool_calls[0]

    def feedback(self, turn: ModelTurn, code: str, state: Mapping[str, Any]) -> tuple[Message, ...]:
        body = {
            "type": "tool_protocol_error",
            "code": code,
            "message": prompts.PROTOCOL_MESSAGES.get(code, prompts.PROTOCOL_FALLBACK),
            "instruction": prompts.PROTOCOL_INSTRUCTION,
            "available_tools": offered(state),
        }
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        if turn.tool_calls:
            return tuple(Message("tool", text, call.call_id) for call in turn.tool_calls)
        return (Message("user", text),)

    def page(self, call: ToolCall, observation: Observation) -> tuple[Message, ...]:
        return (Message("tool", observation.text, call.call_id),)


def render_chunks(chunks: Sequence[Chunk]) -> str:
    """The skill block of the system message (training.md §1.4); ``chunks`` must not be empty."""
    lines = [prompts.SKILL_TITLE, prompts.SKILL_CAUTION]
    for chunk in chunks:
        skill_id = json.dumps(chunk.skill_id, ensure_ascii=False)
        version = json.dumps(chunk.version, ensure_ascii=False)
        lines += [f"<skill id={skill_id} version={version}>", chunk.content.strip(), "</skill>"]
    return "\n".join(lines)


def shown_instruction(task: Task) -> str:
    """What the agent reads: with a persona the simple text, since the rest is in the persona."""
    return task.instruction_simple if task.persona else task.instruction


class WordConversation:
    """Word surface: the world's own language lays out the prompt and reads the calls."""

    def __init__(self, language: WordLanguage) -> None:
        self.language = language

    def identity(self) -> dict[str, Any]:
        return {
            "prompt_version": prompts.WORD_PROMPT_VERSION,
            "vocabulary_sha256": fingerprint(list(self.language.vocabulary())),
        }

    def prompt(
        self, task: Task, chunks: Sequence[Chunk], observation: Observation
    ) -> tuple[Message, ...]:
        laid_out = self.language.prompt(task, [chunk.content for chunk in chunks])
        head = tuple(Message(cast(Role, role), text) for role, text in laid_out)
        return (*head, Message("user", observation.text))

    def tools(self, state: Mapping[str, Any]) -> Tools:
        return ()

    def holds_a_call(self, turn: ModelTurn) -> bool:
        return turn.finish_reason != "length"  # without its end word an action is not complete

    def call(self, turn: ModelTurn, state: Mapping[str, Any]) -> ToolCall:
        name, arguments = self.language.decode(turn.text.split(), state)
        return ToolCall(name, arguments)

    def feedback(self, turn: ModelTurn, code: str, state: Mapping[str, Any]) -> tuple[Message, ...]:
        return (Message("user", self.language.feedback(code)),)

    def page(self, call: ToolCall, observation: Observation) -> tuple[Message, ...]:
        return (Message("user", observation.text),)


def conversation_builder(world: World) -> ConversationBuilder:
    """The surface of a world: its own language, or function tools."""
    if world.language is None:
        return FunctionConversation()
    return WordConversation(world.language)
