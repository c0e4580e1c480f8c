"""A reversible tokenizer with a chat template of Qwen's shape, for tests without a real one.

Special tokens are single ids; every other character is its own. The template renders tools at the
head of the system message, past reasoning only when a message carries it, tool results as user
messages, and opens the next turn inside the thinking phase.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

SPECIAL = ("<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>")
_PIECES = re.compile("(" + "|".join(re.escape(token) for token in SPECIAL) + ")")


class ToyTokenizer:
    """What the hooks and slime use of a Hugging Face tokenizer."""

    eos_token = "<|im_end|>"
    eos_token_id = SPECIAL.index("<|im_end|>")

    def encode(self, text: str, add_special_tokens: bool = True, **_: Any) -> list[int]:
        ids: list[int] = []
        for piece in _PIECES.split(text):
            if piece in SPECIAL:
                ids.append(SPECIAL.index(piece))
            else:
                ids += [len(SPECIAL) + ord(character) for character in piece]
        return ids

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = False, **_: Any) -> str:
        return "".join(
            ("" if skip_special_tokens else SPECIAL[token])
            if token < len(SPECIAL)
            else chr(token - len(SPECIAL))
            for token in ids
        )

    def apply_chat_template(
        self,
        messages: Sequence[dict[str, Any]],
        tools: Sequence[dict[str, Any]] | None = None,
        tokenize: bool = True,
        add_generation_prompt: bool = False,
        **_: Any,
    ) -> Any:
        text = render_chat(messages, tools, add_generation_prompt)
        return {"input_ids": self.encode(text)} if tokenize else text


def render_chat(messages: Sequence[dict[str, Any]], tools: Any, add_generation_prompt: bool) -> str:
    """The conversation as text."""
    parts = []
    for index, message in enumerate(messages):
        role, content = message["role"], message.get("content") or ""
        if index == 0 and tools:
            head = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
            content = f"<tools>\n{head}\n</tools>\n\n{content if role == 'system' else ''}"
            if role != "system":
                parts.append(_block("system", content))
                content = message.get("content") or ""
        if role == "assistant":
            parts.append(_block("assistant", _assistant(message, content)))
        elif role == "tool":
            parts.append(_block("user", f"<tool_response>\n{content}\n</tool_response>"))
        else:
            parts.append(_block(role, content))
    if add_generation_prompt:
        parts.append("<|im_start|>assistant\n<think>\n")
    return "".join(parts)


def _block(role: str, content: str) -> str:
    return f"<|im_start|>{role}\n{content}<|im_end|>\n"


def _assistant(message: dict[str, Any], content: str) -> str:
    reasoning = message.get("reasoning_content")
    text = f"<think>\n{reasoning}\n</think>\n\n{content}" if reasoning else content
    for call in message.get("tool_calls") or []:
        function = call["function"]
        text += call_text(function["name"], function["arguments"])
    return text


def call_text(name: str, arguments: dict[str, Any]) -> str:
    """A function call as the qwen3_coder parser reads it."""
    lines = [f"<tool_call>\n<function={name}>"]
    for key, value in arguments.items():
        lines.append(f"<parameter={key}>\n{value}\n</parameter>")
    return "\n".join([*lines, "</function>\n</tool_call>"])


def answer(name: str, thought: str = "thinking", **arguments: Any) -> str:
    """A whole sampled turn: reasoning, then one call."""
    return f"{thought}\n</think>\n\n{call_text(name, arguments)}"
