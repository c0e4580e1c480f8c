"""The model's view of an episode: chat messages, the tools offered, and the prompt's token ids.

Two ways to build the prompt of a later turn (setting ``sample_layout``):

- ``turn`` (published): the whole message list is rendered through the chat template anew, with the
  tools of the present page at its head. Prompts of two turns share no long prefix.
- ``episode``: the tools never change (the clickable values stand in the observation anyway), and a
  turn appends to the tokens before it: what was sampled stays exactly as it was, followed by the
  template's text around the new messages. The whole episode is one token sequence.

Specification: training.md §4.5, §9.3, §9.4, §9.10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from trainer.rollout.policy import Message, ModelTurn
from trainer.shop.tools import tools_for

Tools = Sequence[Mapping[str, Any]]
_MARK = "\u2063intraskill\u2063"  # invisible separators: no template or model text contains it


class Tokenizer(Protocol):
    """What is used of a Hugging Face tokenizer."""

    eos_token: str | None
    eos_token_id: int | None

    def apply_chat_template(self, messages: Any, **options: Any) -> Any: ...
    def encode(self, text: str, **options: Any) -> list[int]: ...
    def decode(self, token_ids: Sequence[int], **options: Any) -> str: ...


def fixed_tools() -> list[dict[str, Any]]:
    """Both tools, with no list of values: the same on every page."""
    tools = tools_for({"search_available": True, "actions": ["x"]})
    for tool in tools:
        for schema in tool["function"]["parameters"]["properties"].values():
            schema.pop("enum", None)
    return tools


def render(tokenizer: Tokenizer, messages: Sequence[Mapping[str, Any]], tools: Tools) -> list[int]:
    """Token ids of a rendered conversation, ready for the next assistant turn."""
    encoded = tokenizer.apply_chat_template(
        list(messages), tools=list(tools) or None, tokenize=True, add_generation_prompt=True
    )
    ids = encoded["input_ids"] if isinstance(encoded, Mapping) else encoded
    return [int(token) for token in ids]


def message_of(message: Message) -> dict[str, Any]:
    """A message as chat templates take it; call ids are a matter of the wire, not of the model."""
    return {"role": message.role, "content": message.content}


def assistant_message(turn: ModelTurn, *, echo_reasoning: bool) -> dict[str, Any] | None:
    """How a sampled turn is told to later turns; None when there is nothing to tell."""
    message: dict[str, Any] = {"role": "assistant", "content": turn.text.strip()}
    if turn.tool_calls:
        message["content"] = ""
        message["tool_calls"] = [
            {"type": "function", "function": {"name": c.name, "arguments": dict(c.arguments)}}
            for c in turn.tool_calls
        ]
    elif not message["content"]:
        return None
    if echo_reasoning and turn.reasoning:
        message["reasoning_content"] = turn.reasoning
    return message


class RenderedPrompt:
    """The prompt of each turn, rendered anew (layout ``turn``)."""

    def __init__(
        self, tokenizer: Tokenizer, messages: Sequence[Message], *, echo_reasoning: bool
    ) -> None:
        self._tokenizer = tokenizer
        self._echo_reasoning = echo_reasoning
        self.messages = [message_of(message) for message in messages]

    def tools(self, page_tools: Tools) -> Tools:
        """The tools the model is told of."""
        return page_tools

    def token_ids(self, page_tools: Tools) -> list[int]:
        """The prompt of the next turn."""
        return render(self._tokenizer, self.messages, page_tools)

    def add(self, turn: ModelTurn, sampled: Sequence[int], replies: Sequence[Message]) -> None:
        """Take in a sampled turn and what it was answered with."""
        echo = assistant_message(turn, echo_reasoning=self._echo_reasoning)
        if echo is not None:
            self.messages.append(echo)
        self.messages += [message_of(reply) for reply in replies]


class AppendedPrompt:
    """The prompt as one growing token sequence (layout ``episode``)."""

    def __init__(self, tokenizer: Tokenizer, messages: Sequence[Message]) -> None:
        self._tokenizer = tokenizer
        self._tools = fixed_tools()
        self.messages = [message_of(message) for message in messages]
        self._ids = render(tokenizer, self.messages, self._tools)

    def tools(self, page_tools: Tools) -> Tools:
        """The tools the model is told of: always both."""
        return self._tools

    def token_ids(self, page_tools: Tools) -> list[int]:
        """Everything so far."""
        return list(self._ids)

    def add(self, turn: ModelTurn, sampled: Sequence[int], replies: Sequence[Message]) -> None:
        """Append the sampled tokens as they are and the template's text around the replies."""
        echo = assistant_message(turn, echo_reasoning=False)
        if echo is not None:
            self.messages.append(echo)
        added = [message_of(reply) for reply in replies]
        self.messages += added
        text = self._text_after_turn(added)
        eos, eos_id = self._tokenizer.eos_token, self._tokenizer.eos_token_id
        if sampled and eos is not None and sampled[-1] == eos_id:
            text = text.removeprefix(eos)  # the model closed its turn itself
        self._ids += [*sampled, *self._tokenizer.encode(text, add_special_tokens=False)]

    def _text_after_turn(self, added: Sequence[Mapping[str, Any]]) -> str:
        """What the template puts between an assistant turn's last word and the next turn's first.

        It does not depend on what came before the turn, so a stand-in conversation shows it.
        """
        stand_in = [
            {"role": "user", "content": "-"},
            {"role": "assistant", "content": _MARK},
            *added,
        ]
        text = str(
            self._tokenizer.apply_chat_template(
                stand_in, tokenize=False, add_generation_prompt=True
            )
        )
        before, mark, after = text.partition(_MARK)
        if not mark or not before:
            raise ValueError("the chat template does not show an assistant message's content")
        return after


def without_end_tokens(tokenizer: Tokenizer, token_ids: Sequence[int]) -> list[int]:
    """The sampled ids without the end-of-turn token, which is no part of what was said."""
    ids = list(token_ids)
    while ids and ids[-1] == tokenizer.eos_token_id:
        ids.pop()
    return ids
