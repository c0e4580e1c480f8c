"""Traces in the slim layout, made up for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

ChunkLine = tuple[str, str, float]  # logical id, title, effect


def chunk_text(title: str) -> str:
    """A chunk in the usual layout."""
    steps = ("Applies when: always", f"Procedure: {title.lower()}", "Verify: look at the page")
    return f"### {title}\n\n" + "\n".join(f"- {step}" for step in steps)


PRODUCT = {
    "asin": "100000000001",
    "title": "tarn vintage bottle",
    "brand": "tarn",
    "category": "bottle",
    "price": "25",
    "key_attributes": ["vintage", "copper"],
}
RESULTS = {
    "page_type": "search_results",
    "search_available": False,
    "search_text": "tarn vintage bottle",
    "page": 1,
    "total_pages": 3,
    "total_results": 9,
    "actions": ["next >", "100000000001"],
    "products": [
        {**PRODUCT, "rank": rank, "title": f"{PRODUCT['title']} {rank}"} for rank in range(1, 7)
    ],
}
DETAIL = {
    "page_type": "product_detail",
    "search_available": False,
    "product": PRODUCT,
    "available_options": {"size": ["s", "m", "l"], "colour": ["white", "pink"]},
    "selected_options": {},
    "missing_option_axes": ["size"],
    "actions": ["size=s"],
}
CHOSEN = {
    **DETAIL,
    "selected_options": {"size": "s"},
    "missing_option_axes": [],
    "selected_price": 25.0,
}
TERMINAL: dict[str, Any] = {"page_type": "terminal", "actions": []}
# function, argument, page after it, what the policy wrote
CALLS: list[tuple[str, str, str, Mapping[str, Any], str]] = [
    ("search", "query", "tarn vintage bottle", RESULTS, "search tarn vintage bottle"),
    ("click", "value", "100000000001", DETAIL, "open #1"),
    ("click", "value", "size=s", CHOSEN, "select s"),
    ("click", "value", "buy now", TERMINAL, "buy"),
]


def make_trace(
    episode_id: str,
    task_id: int,
    sample: int,
    chunks: Sequence[ChunkLine],
    *,
    success: bool = True,
    split: str = "val",
    instruction: str = "A foldable vintage bottle by tarn, copper, size s, at most 27",
    content: str | None = None,
) -> dict[str, Any]:
    """Search, open, select, buy; ``content`` is what the policy wrote in turn two."""
    return {
        "schema_version": "shopsimrl-episode-v4",
        "layout": "slim-v1",
        "episode_id": episode_id,
        "status": "completed",
        "job": {"task_id": task_id, "sample_id": sample, "seed": 1, "split": split},
        "provenance": {"skills": {"provider": "none"}},
        "reset": {"task_instruction": instruction, "user_persona": {"brand": "tarn", "size": "s"}},
        "selected_skills": [
            {"skill_id": c, "content": chunk_text(t), "version": "1", "metadata": {"title": t}}
            for c, t, _effect in chunks
        ],
        "conversation": [
            {"role": "system", "content": "You shop for a person."},
            {"role": "user", "content": f"Task: {instruction}"},
        ],
        "steps": [_step(i, success, content) for i in range(len(CALLS))],
        "final": _final(success),
        "error": None,
        "tokens": {
            "total": 122,
            "sampled": 16,
            "log_prob_mean": -0.21,
            "log_prob_min": -1.7,
            "token_ids": list(range(122)),
            "sampled_spans": [[100, 116]],
            "log_probs": [-0.21] * 16,
        },
    }


def _step(i: int, success: bool, content: str | None) -> dict[str, Any]:
    name, key, value, state, text = CALLS[i]
    last = i == len(CALLS) - 1
    return {
        "step_index": i + 1,
        "observation": f"page {i} <b>of the shop</b>",
        "model": {
            "content": content if content is not None and i == 1 else text,
            "reasoning": "",
            "finish_reason": "stop",
            "tool_calls": [{"call_id": "c", "name": name, "arguments": {key: value}}],
            "usage": {"completion_tokens": 4},
            "latency_ms": 1.5,
        },
        "action": f"{name}[{value}]",
        "environment": {
            "done": last,
            "reward": float(success and last),
            "observation_state": dict(state),
            "action_feedback": {"valid": True, "reason": "executed"},
        },
    }


def _final(success: bool) -> dict[str, Any]:
    won = float(success)
    parts = dict.fromkeys(("r_type", "r_att", "r_option", "r_loose"), 1.0)
    return {
        "done": True,
        "reward": won,
        "reward_detail": {
            **parts,
            "r_price": won,
            "r_strict": won,
            "r_success": won,
            "reward_version": "v",
            "price_upper": 27,
            "target_asin_match": True,
        },
        "purchase": {"asin": "100000000001", "price": 25.0 if success else 31.0},
        "goal": {"asin": "100000000001", "price_upper": 27},
        "termination_reason": "purchase",
        "observation": "the end",
    }
