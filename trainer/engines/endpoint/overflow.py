"""Reading a server's refusal of a request that is longer than the model's context.

Servers say it in a text with HTTP 400: SGLang names the prompt alone or prompt and answer together,
vLLM and hosted models use OpenAI's wording. All of them name the length of the context.
"""

from __future__ import annotations

import re

_CONTEXT = re.compile(r"context length\D{0,12}(\d+)")
_PROMPT = re.compile(r"(\d+) (?:tokens from the input|in the messages|input tokens)")


def room_for_an_answer(refusal: str) -> int | None:
    """Tokens that a prompt leaves for its answer, 0 where the refusal does not say; None for a
    refusal of another kind."""
    context, prompt = _CONTEXT.search(refusal), _PROMPT.search(refusal)
    if context is None:
        return None
    return max(0, int(context[1]) - int(prompt[1])) if prompt else 0
